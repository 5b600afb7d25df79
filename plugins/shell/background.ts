import { randomBytes } from 'node:crypto';
import type { ToolRun } from '#contracts/tool.ts';
import { shellProblem } from './command.ts';
import type { ShellConfig } from './config.ts';
import { describeEnd, withOutput } from './report.ts';
import type { CommandEnd, RunningCommand } from './run-command.ts';
import type { StartShell } from './shell.ts';
import type { SkillUse } from './skill-copy.ts';

/** The background commands of this process. A conversation only ever sees its own. */
export interface BackgroundCommands {
  /** Starts one and returns its id. Throws ParleyError `tool_failed` if too many are running in the workspace. */
  start(command: string, run: ToolRun, skill?: SkillUse): Promise<string>;
  /** Lists the conversation's commands, one line each. */
  list(run: ToolRun): string;
  read(id: string, run: ToolRun): string;
  /** Ends it and resolves once it has ended. */
  end(id: string, run: ToolRun): Promise<string>;
  /** Ends all of them. */
  close(): Promise<void>;
}

type Job = {
  readonly id: string;
  readonly owner: string;
  readonly command: string;
  readonly startedAt: number;
  readonly running: RunningCommand;
  end?: CommandEnd;
};

/** How many ended commands of a conversation can still be read. */
const maxEnded = 8;

export function createBackgroundCommands(start: StartShell, config: ShellConfig): BackgroundCommands {
  const jobs = new Jobs();
  const limitMs = config.maxBackgroundMs;
  return {
    async start(command, run, skill) {
      const freed = jobs.reserve(run.workspace, config.maxBackground);
      try {
        const running = await start(command, { workspace: run.workspace, timeoutMs: limitMs, skill });
        void running.ended.then(freed);
        return jobs.add(command, running, run).id;
      } catch (error) {
        freed();
        throw error;
      }
    },
    list: (run) => {
      const lines = jobs.of(run).map((job) => `${job.id}  ${stateOf(job, limitMs)}  ${oneLine(job.command)}`);
      return lines.length === 0 ? '(no background commands)' : lines.join('\n');
    },
    read: (id, run) => {
      const job = jobs.find(id, run);
      return withOutput(job.running.output.text(), stateOf(job, limitMs));
    },
    async end(id, run) {
      const { running } = jobs.find(id, run);
      running.stop();
      const end = await running.ended;
      return withOutput(running.output.text(), describeEnd(end, limitMs));
    },
    async close() {
      for (const { running } of jobs.all()) running.stop();
      await Promise.all(jobs.all().map(({ running }) => running.ended));
    },
  };
}

/** The commands by id, and how many run in each workspace. */
class Jobs {
  readonly #jobs = new Map<string, Job>();
  readonly #active = new Map<string, number>();

  /** Takes one of the workspace's places; the result gives it back. Throws ParleyError `tool_failed` if none is left. */
  reserve(workspace: string, most: number): () => void {
    const active = this.#active.get(workspace) ?? 0;
    if (active >= most) {
      throw shellProblem(
        `${active} background commands are running in this workspace, which is the limit. End one first.`,
      );
    }
    this.#active.set(workspace, active + 1);
    return () => this.#active.set(workspace, (this.#active.get(workspace) ?? 1) - 1);
  }

  add(command: string, running: RunningCommand, run: ToolRun): Job {
    const id = randomBytes(3).toString('hex');
    const job: Job = { id, owner: run.sessionKey, command, startedAt: Date.now(), running };
    this.#jobs.set(id, job);
    void running.ended.then((end) => {
      job.end = end;
      const ended = this.of(run).filter((each) => each.end !== undefined);
      for (const oldest of ended.slice(0, Math.max(0, ended.length - maxEnded))) this.#jobs.delete(oldest.id);
    });
    return job;
  }

  all(): readonly Job[] {
    return [...this.#jobs.values()];
  }

  of({ sessionKey }: ToolRun): readonly Job[] {
    return this.all().filter(({ owner }) => owner === sessionKey);
  }

  find(id: string, run: ToolRun): Job {
    const job = this.#jobs.get(id);
    if (job?.owner === run.sessionKey) return job;
    throw shellProblem(
      `This conversation has no background command ${id}. They end when Parley stops; "list" shows those that exist.`,
    );
  }
}

function stateOf({ end, startedAt }: Job, timeoutMs: number): string {
  return end === undefined
    ? `(running for ${Math.round((Date.now() - startedAt) / 1000)} s)`
    : describeEnd(end, timeoutMs);
}

function oneLine(command: string): string {
  const line = command.replace(/\s+/g, ' ').trim();
  return line.length <= 80 ? line : `${line.slice(0, 79)}…`;
}

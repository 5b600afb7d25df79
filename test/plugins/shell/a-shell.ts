import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accountId, agentId, channelId, conversationId, runId, sessionId } from '#contracts/ids.ts';
import { formatSessionKey } from '#contracts/session-key.ts';
import type { SkillReader, SkillSnapshot } from '#contracts/skill.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { shellConfigSchema } from '../../../plugins/shell/config.ts';
import { createShellPlugin } from '../../../plugins/shell/index.ts';
import { createShell } from '../../../plugins/shell/shell.ts';
import { createPluginHost } from '../../../src/plugin-host/plugin-host.ts';
import { workspaceDisks } from '../../../src/processes/disk-gate.ts';
import { noHooks } from '../../support/no-hooks.ts';
import { nothingToSettle } from '../../support/nothing-to-settle.ts';
import { silentLog } from '../../support/silent-log.ts';

export type ShellOptions = {
  readonly config?: object;
  readonly bwrap?: string;
  readonly os?: NodeJS.Platform;
  readonly skills?: { readonly snapshot: SkillSnapshot; readonly reader: SkillReader };
};

type CallOptions = {
  readonly signal?: AbortSignal;
  readonly run?: ToolRun;
  readonly update?: (text: string) => void;
};

/** Creates a workspace and a folder next to it, both removed by `remove`, with the shell tools as a run gets them. */
export async function aShell({ config = {}, bwrap = 'bwrap', os = 'linux', skills }: ShellOptions = {}) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'parley-shell-test-')));
  const workspace = join(folder, 'workspace');
  const outside = join(folder, 'outside');
  await mkdir(workspace);
  await mkdir(outside);
  const host = createPluginHost({
    ...{ log: silentLog, settle: nothingToSettle, hooks: noHooks },
    ...(skills && { skills: skills.reader }),
  });
  const definition = createShellPlugin(os, bwrap);
  await host.load([{ definition, config: { enabled: true, ...config } }]);
  await host.checked();
  const run: ToolRun = { ...aRun(workspace), ...(skills && { skills: skills.snapshot }) };
  const tools = new Map(host.toolsFor(run).map((tool) => [tool.name, tool]));
  const report = host.reports()[0];
  return {
    folder,
    workspace,
    outside,
    run,
    tools: [...tools.keys()],
    finding: report?.kind === 'loaded' ? report.finding : undefined,
    /** Calls a tool as the loop does: arguments through its schema, then `execute`. Resolves with the text, or rejects. */
    async call(name: string, args: object, options: CallOptions = {}): Promise<string> {
      const tool = tools.get(name);
      if (tool === undefined) throw new Error(`no tool ${name}`);
      const output = await tool.execute(tool.inputSchema.parse(args), {
        callId: 'c1',
        run: options.run ?? run,
        signal: options.signal ?? new AbortController().signal,
        update: options.update ?? (() => undefined),
      });
      if ('parked' in output) throw new Error('the tool waits');
      return output.text;
    },
    bash(command: string, options: CallOptions & { readonly timeoutSeconds?: number } = {}): Promise<string> {
      const { timeoutSeconds } = options;
      return this.call('bash', { command, ...(timeoutSeconds && { timeoutSeconds }) }, options);
    },
    /** Returns what a person who approves the call is shown. */
    describe(args: object): string | undefined {
      const tool = tools.get('bash');
      return tool?.describe?.(tool.inputSchema.parse(args));
    },
    /** Returns a function that runs commands with another program in bubblewrap's place, unchecked. */
    recording(program: string): (command: string) => Promise<void> {
      const settings = shellConfigSchema.parse({ enabled: true });
      const start = createShell({ config: settings, disks: workspaceDisks, bwrap: program });
      return async (command) => {
        const { ended } = await start(command, { workspace, timeoutMs: 60_000 });
        const end = await ended;
        if (end.kind !== 'exited') throw new Error(JSON.stringify(end));
      };
    },
    close: host.close,
    async remove() {
      await host.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export type AShell = Awaited<ReturnType<typeof aShell>>;

export function aRun(workspace: string, group = '12'): ToolRun {
  const [channel, account, conversation] = [channelId('net'), accountId('77'), conversationId(group)];
  const agent = agentId('main');
  return {
    runId: runId('r1'),
    sessionId: sessionId('s1'),
    sessionKey: formatSessionKey({ kind: 'group', agent, account, channel, group: conversation }),
    agentId: agent,
    route: { channel, account, conversation },
    authority: 'owner',
    workspace,
    epoch: 1,
  };
}

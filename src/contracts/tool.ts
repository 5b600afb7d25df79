import type { z } from 'zod';
import type { ChildRole } from './child.ts';
import type { AgentId, RunId, SessionId, SessionKey } from './ids.ts';
import type { Authority } from './outcome.ts';
import type { ReplyRoute } from './route.ts';
import type { SkillSnapshot } from './skill.ts';

/** Something the model may call. */
export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: z.ZodType<Input>;
  /** May run in parallel with other parallel-safe tools of the same batch. */
  readonly parallelSafe: boolean;
  /**
   * Recovery of a call that started and has no result: `safe` runs it again, `never` reports "outcome unknown".
   * A `durable` call writes its effect in one transaction under its call id, so running it again re-attaches to
   * that effect.
   */
  readonly replay: 'safe' | 'never' | 'durable';
  /** The least trusted authority that may cause this tool to run. */
  readonly authority: Authority;
  /** Repairs arguments that models often get wrong, before validation. */
  prepareArguments?(raw: unknown): unknown;
  /**
   * Says everything that the call does, for the person who approves it: two calls with different effects have different
   * descriptions. An approved call runs only if its description is still the same. Absent: its name and arguments.
   */
  describe?(input: Input): string;
  /** `ask`: a person approves each call unless the configuration says otherwise; absent: none needs to. */
  readonly approval?: 'ask';
  /**
   * Throws for failures the model should read; the message goes to the model. A `durable` tool whose
   * answer comes later, from outside, returns `ParkRequest` once its effect is stored: its run then waits
   * without slot or lease until the call is settled.
   */
  execute(input: Input, ctx: ToolContext): Promise<ToolOutput | ParkRequest>;
}

/** One call of a tool, as the tool gets it. */
export type ToolContext = {
  readonly callId: string;
  readonly run: ToolRun;
  /** An earlier attempt started this call and left no result: it may have had its effect. */
  readonly isRepeat?: boolean;
  /** Aborts when the run is cancelled or ends. */
  readonly signal: AbortSignal;
  /** Reports the output so far while the tool is running, for clients; it replaces what was reported before. */
  update(text: string): void;
};

/** A tool's view of its run. */
export type ToolRun = {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly sessionKey: SessionKey;
  readonly agentId: AgentId;
  /** Absent in a run that is only on record, whose answer goes to no conversation. */
  readonly route?: ReplyRoute;
  readonly authority: Authority;
  /** Its rights as a sub-agent; absent in a run that wasn't spawned. */
  readonly role?: ChildRole;
  /** Absent: as its role says, otherwise `main`. */
  readonly type?: AgentType;
  /** The agent's workspace; the only folder its file tools reach. */
  readonly workspace: string;
  /** Those that it began with; absent if there are none. */
  readonly skills?: SkillSnapshot;
  /** Reads the files that came with its session's messages, which its file tools show in the folder `inbox`. */
  readonly receivedFiles?: () => Promise<readonly ReceivedFile[]>;
  /** Proves to the store that this run still owns its lane. */
  readonly epoch: number;
};

/** A file that came with a message. `path`: absolute; `name`: as it was sent, and unique in its session. */
export type ReceivedFile = { readonly name: string; readonly path: string; readonly sizeBytes: number };

/** Longest text of a result, in bytes of UTF-8; the model gets the beginning of a longer one, with a note. */
export const maxResultBytes = 32 * 1024;

/** Most files of one result. */
export const maxResultFiles = 10;

/** `path`: relative to the workspace, or absolute inside it. `name`: shown to people; absent: the file's own. */
export type ResultFile = {
  readonly path: string;
  readonly name?: string;
  /** Sends Ogg Opus as a voice message, if the network has them; anything else is sent as a file. */
  readonly asVoice?: boolean;
};

/** The result of a tool call. */
export type ToolOutput = {
  /** Text for the model; at most `maxResultBytes` of it. */
  readonly text: string;
  /** Strangers' text, such as a web page. The model gets it before `text`, enclosed as data; `about` says what it is. */
  readonly untrusted?: { readonly about: string; readonly text: string };
  readonly images?: readonly { readonly mimeType: string; readonly base64: string }[];
  /**
   * Files of the workspace, copied as they are now and sent with the run's next answer, even a silent one; at most
   * `maxResultFiles`. The model is told which are attached and why others aren't. Not for the result of a parked call.
   */
  readonly files?: readonly ResultFile[];
  /** For the page and the log, not for the model. */
  readonly metadata?: Record<string, unknown>;
};

/** A request to keep the call open until it is settled, even if that is days later and in another process. */
export type ParkRequest = {
  readonly parked: {
    /** Reason for waiting, shown on the page and in the log, for example "an approval". */
    readonly reason: string;
    /** The wait expires after this long without an answer, ms; by default 7 days, at most 30 days. */
    readonly waitMs?: number;
  };
};

/** Names a call to be settled: call ids are unique within a run. */
export type CallRef = { readonly runId: RunId; readonly callId: string };

/**
 * Result of a settlement. Only `settled` changed anything: a call has one result, the first. `cancelled`:
 * its run was asked to stop, or has ended, and answers the call itself.
 */
export type Settlement = 'settled' | 'settled-before' | 'cancelled' | 'not-started' | 'unknown-call';

/** Gives a started call its result, which the model reads as the tool's own. Safe to repeat. */
export type SettleCall = (
  call: CallRef,
  result: ToolOutput & { readonly isError?: boolean },
) => Promise<Settlement>;

/** Creates a tool for one run, or none where it would make no sense. */
export type ToolFactory = (run: ToolRun) => Tool | undefined;

/** Checks a tool's definition against its input type, and widens the type for lists of tools. */
export function defineTool<Input>(tool: Tool<Input>): Tool {
  // The schema has parsed the input before `execute` sees it, so widening the parameter is safe.
  return tool as Tool;
}

/**
 * Kinds of work that agents do: `main` has all tools of its agent, `task` the read-only tools, `summarizer` and
 * `title` have none.
 */
export type AgentType = 'main' | 'task' | 'summarizer' | 'title';

/** Types that a sub-agent may be spawned as. `coder` is another name of `main`. */
export const spawnableTypes = ['main', 'coder', 'task'] as const;

/** Returns the type that a name stands for. */
export function agentTypeOf(name: (typeof spawnableTypes)[number]): 'main' | 'task' {
  return name === 'task' ? 'task' : 'main';
}

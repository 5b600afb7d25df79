import type { z } from 'zod';
import type { AgentId, RunId, SessionId, SessionKey } from './ids.ts';
import type { Authority } from './outcome.ts';
import type { ReplyRoute } from './route.ts';

/** Something the model may call. */
export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: z.ZodType<Input>;
  /** May run beside other parallel-safe tools of the same batch. */
  readonly parallelSafe: boolean;
  /**
   * What recovery does with a call that started and has no result: `safe` runs it again, `never`
   * reports "outcome unknown". A `durable` call writes its effect in one transaction under its call
   * id, so running it again re-attaches to that effect.
   */
  readonly replay: 'safe' | 'never' | 'durable';
  /** The least trusted authority that may cause this tool to run. */
  readonly authority: Authority;
  /** Mends arguments that models often get wrong, before validation. */
  prepareArguments?(raw: unknown): unknown;
  /** Throws for failures the model should read; the message goes to the model. */
  execute(input: Input, ctx: ToolContext): Promise<ToolOutput>;
}

export type ToolContext = {
  readonly callId: string;
  readonly run: ToolRun;
  /** Aborts when the run is cancelled or ends. */
  readonly signal: AbortSignal;
  /** Reports partial output while the tool works. */
  update(text: string): void;
};

/** What a tool may know of the run it works for. */
export type ToolRun = {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly sessionKey: SessionKey;
  readonly agentId: AgentId;
  readonly route: ReplyRoute;
  readonly authority: Authority;
  /** The agent's workspace; the only folder its file tools reach. */
  readonly workspace: string;
  /** Proves to the store that this run still owns its lane. */
  readonly epoch: number;
};

export type ToolOutput = {
  /** Text for the model; over 32 KB it is cut with a note. */
  readonly text: string;
  readonly images?: readonly { readonly mimeType: string; readonly base64: string }[];
  /** For the page and the log, not for the model. */
  readonly metadata?: Record<string, unknown>;
};

/** Makes a tool for one run, or none where it would have no meaning. */
export type ToolFactory = (run: ToolRun) => Tool | undefined;

/** Keeps the input type of a tool while it is written; forgets it for lists of tools. */
export function defineTool<Input>(tool: Tool<Input>): Tool {
  // The schema has parsed the input before `execute` sees it, so widening the parameter is safe.
  return tool as Tool;
}

/** The parts that a plugin may provide besides tools and hooks, and what it may ask Parley for. */
import type { FeedEvent } from './feed.ts';
import type { RunOverride } from './inbox-item.ts';
import type { LlmProvider } from './model.ts';
import type { Authority } from './outcome.ts';
import type { StoreOp } from './plugin-store.ts';

/** A chat command, on all networks. */
export interface PluginCommand {
  /** Up to 32 small letters, digits and underscores. */
  readonly name: string;
  /** Words that may follow the name, for `/help`. */
  readonly usage?: string;
  /** One line for `/help` and the networks' menus, 3 to 100 characters. */
  readonly description: string;
  /** Who may send it: everybody (default), in groups only administrators, or only owners. */
  readonly right?: 'anyone' | 'admins' | 'owner';
  /**
   * Returns the answer, and the changes of the plugin's values: both are stored in the transaction that accepts the
   * message, so a repeated message changes nothing twice. It may be called again before that, so it has no other
   * effect. Has 5 s. `say` is absent for no answer.
   */
  run(call: PluginCommandCall): Promise<PluginCommandAnswer> | PluginCommandAnswer;
}

/** A command as somebody has sent it. */
export type PluginCommandCall = {
  /** The words after the name. */
  readonly words: string;
  /** Who sent it, `telegram:123`, and what this person may do. */
  readonly sender: string;
  readonly authority: Authority;
  /** The conversation's session. */
  readonly session: string;
  readonly signal: AbortSignal;
};

export type PluginCommandAnswer = { readonly say?: string; readonly ops?: readonly StoreOp[] };

/** A route below `/plugins/<id>/`. */
export interface PluginRoute {
  readonly method: 'GET' | 'POST';
  /**
   * For example `forecast`. The caller needs the access token, or to be signed in. Only for a path that begins with
   * `webhook/` it doesn't: its handler has to check a secret itself.
   */
  readonly path: string;
  /** Has 30 s. */
  handle(request: PluginRequest): Promise<PluginResponse> | PluginResponse;
}

export type PluginRequest = {
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** JSON of at most 64 kB; for a webhook, the bytes, at most 1 MB. */
  readonly body: unknown;
  readonly signal: AbortSignal;
};

/** `status`: 200 by default. A `body` that isn't text is sent as JSON. */
export type PluginResponse = { readonly status?: number; readonly type?: string; readonly body?: unknown };

/** Creates a model by its id: for the model `tides/moon` of a provider `tides`, `moon`. */
export type PluginProviderFactory = (model: string) => LlmProvider;

/** Something that an agent should read. */
export type PluginItem = {
  /** Repeats under one key are one message. */
  readonly key: string;
  readonly text: string;
  /** A session; absent: the owner's main conversation with the agent. */
  readonly session?: string;
  /** Absent: the default agent. */
  readonly agent?: string;
};

/** A message that was accepted; `runId` is the run that it begins, unless another run takes it. */
export type PluginAccepted = {
  readonly runId: string;
  readonly session: string;
  readonly acceptedAt: number;
};

/** A message of a plugin to an agent. */
export type PluginMessage = {
  readonly message: string;
  /** An existing session, not combined with `agent`; absent: the owner's main conversation with the agent. */
  readonly session?: string;
  /** Absent: the default agent. */
  readonly agent?: string;
  /** Repeats under one key are one message. */
  readonly key?: string;
  readonly files?: readonly { readonly name: string; readonly bytes: Buffer }[];
  /** Sets something for the run; then the message joins no other one, and nothing joins its. */
  readonly override?: RunOverride;
};

/** An event for the caller of `run` or `summarize`. Only the last one is `done`, with the complete answer or the fault. */
export type AgentServiceEvent = {
  readonly type: 'response' | 'summarize' | 'error';
  /** The answer so far, replacing any earlier one. */
  readonly message?: string;
  readonly error?: string;
  /** Share of the history that the summarizing model has read, 0 to 1. */
  readonly progress?: number;
  readonly done: boolean;
};

/** How a plugin talks to an agent. The answer is returned, not sent anywhere. Messages have the owner's authority. */
export interface PluginAgent {
  send(input: PluginMessage): Promise<PluginAccepted>;
  /** Sends a message and reports its progress; it is sent even if the events aren't read. Aborting ends only these. */
  run(input: PluginMessage, signal: AbortSignal): AsyncIterable<AgentServiceEvent>;
  /** Summarizes the older part of a session that isn't busy, reporting the progress; `cancel` stops it. */
  summarize(session: string, signal: AbortSignal): AsyncIterable<AgentServiceEvent>;
  /** Waits for the run's result; `kind` is `open` if it hasn't ended after `timeoutMs`. Never stops the run. */
  wait(
    runId: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<{ readonly kind: string; readonly text?: string }>;
  /** Gives the session's run a message at its next boundary. */
  steer(session: string, text: string): Promise<PluginAccepted>;
  /** Stops the session's run and its waiting messages. False: there were none. */
  cancel(session: string): Promise<boolean>;
  isSessionBusy(session: string): Promise<boolean>;
  /** Says whether any session is busy. */
  isBusy(): Promise<boolean>;
  /** Says whether a process is working on the session's run. */
  isStreaming(session: string): Promise<boolean>;
  /** Returns the session's events from now on, until the signal aborts; `lagged` counts those a slow reader missed. */
  events(session: string, signal: AbortSignal): AsyncIterable<FeedEvent | { readonly lagged: number }>;
}

/**
 * Hooks: functions of plugins, and scripts of the owner, that are called at fixed moments. `src/hooks/hook-table.ts` says
 * who decides, and what a failure of each means.
 */
import type { EndReason } from './agent-event.ts';
import type { MessagePart } from './message.ts';
import type { ModelPurpose } from './model.ts';
import type { ReplyRoute } from './route.ts';
import type { ToolRun } from './tool.ts';

/** The run that an event belongs to. */
export type HookRun = Pick<
  ToolRun,
  'runId' | 'sessionId' | 'sessionKey' | 'agentId' | 'route' | 'authority' | 'role'
>;

/** The call that an event is about. */
export type HookCall = { readonly id: string; readonly name: string };

/** A tool's result, as far as hooks see it. */
export type HookResult = {
  readonly text: string;
  readonly isError: boolean;
  /** For the page and the log, not for the model. */
  readonly metadata?: Record<string, unknown>;
  /** How many images came with it. */
  readonly images: number;
};

/** Workspace file in the prompt. */
export type HookFile = { readonly name: string; readonly text: string };

/** The event that each hook sees. Every handler gets a copy of its own. */
export type HookEvents = {
  readonly gateway_start: { readonly version: string; readonly role: 'all' | 'gateway' | 'worker' };
  readonly gateway_stop: Record<never, never>;
  /** A message whose sender has access, before it is stored. A redelivered or retried one is seen again. */
  readonly message_received: {
    readonly eventKey: string;
    readonly sessionKey: string;
    readonly agentId: string;
    readonly route: ReplyRoute;
    readonly chat: 'dm' | 'group';
    readonly sender: { readonly id: string; readonly name: string };
    readonly text: string;
    readonly files: number;
  };
  /** A complete text on its way to a network, before it is split into messages. */
  readonly message_sending: {
    readonly source: 'answer' | 'tool';
    readonly run: HookRun;
    /** Where it goes. */
    readonly route: ReplyRoute;
    readonly text: string;
  };
  /** One message of it, once the network has answered. */
  readonly message_sent: {
    readonly sessionKey?: string;
    readonly route: ReplyRoute;
    readonly part: string;
    readonly result: string;
  };
  readonly session_start: { readonly sessionId: string; readonly sessionKey: string };
  readonly session_end: { readonly sessionId: string };
  /** A person has asked for a new session; messages sent before are answered in the old one first. */
  readonly before_reset: { readonly sessionKey: string; readonly command: string };
  readonly before_agent_start: {
    readonly run: HookRun;
    /** The instructions, complete. */
    readonly prompt: string;
    /** Additional context so far; it follows the instructions. */
    readonly context: readonly string[];
  };
  readonly agent_bootstrap: {
    readonly agentId: string;
    readonly isSubagent: boolean;
    readonly files: readonly HookFile[];
  };
  readonly before_model_call: { readonly provider: string; readonly model: string } & HookModelCall;
  readonly after_model_call: {
    readonly provider: string;
    readonly model: string;
    readonly result: 'answered' | 'failed' | 'stopped';
    readonly durationMs: number;
  } & HookModelCall;
  readonly agent_end: { readonly run: HookRun; readonly reason: EndReason };
  readonly before_tool_call: {
    readonly run: HookRun;
    readonly call: HookCall;
    readonly input: unknown;
    /** An earlier hook has a person asked. */
    readonly isAsked: boolean;
  };
  readonly after_tool_call: { readonly run: HookRun; readonly call: HookCall; readonly result: HookResult };
  /** `settled`: it came from outside; `child`: from a sub-agent that the call waited for. */
  readonly tool_result_persist: {
    readonly runId: string;
    readonly call: HookCall;
    readonly source: 'tool' | 'settled' | 'child';
    readonly result: HookResult;
  };
  readonly before_compaction: { readonly run: HookSession; readonly oldTokens: number };
  readonly after_compaction: {
    readonly run: HookSession;
    readonly oldTokens: number;
    readonly newTokens: number;
  };
  readonly subagent_spawning: {
    readonly run: HookRun;
    readonly callId: string;
    readonly agentId: string;
    readonly task: string;
    readonly depth: number;
  };
  readonly subagent_ended: { readonly id: string };
};

/** A result on its way to the store: which call it belongs to, and where it comes from. */
export type PersistedCall = Pick<HookEvents['tool_result_persist'], 'runId' | 'call' | 'source'>;

/** Returns the parts of a result as they are stored. Answers at once; never throws. */
export type PersistResult = (of: PersistedCall, parts: readonly MessagePart[]) => readonly MessagePart[];

/** A model call's run and purpose. */
export type HookModelCall = { readonly run: HookSession; readonly purpose: ModelPurpose };

/** A run, as far as a model call or a summary knows it. */
export type HookSession = {
  readonly runId: string;
  readonly sessionId: string;
  readonly agentId: string;
};

/** The event of a `command:<name>` hook, before the command takes effect. */
export type HookCommand = {
  readonly command: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly route: ReplyRoute;
  readonly sender: { readonly id: string; readonly name: string };
};

type Block = { readonly kind: 'block'; readonly reason: string };
type ResultChange = {
  readonly kind: 'rewrite';
  readonly text?: string | undefined;
  readonly isError?: boolean | undefined;
  readonly dropsMetadata?: true | undefined;
  readonly dropsImages?: true | undefined;
};

/** Decisions that handlers may return; undefined is no decision. Every other hook only observes. */
export type HookDecisions = {
  /** `claim`: the plugin answers it. `drop`: nobody does. Both keep it from the agent. */
  readonly message_received:
    | { readonly kind: 'rewrite'; readonly text: string }
    | { readonly kind: 'claim' }
    | { readonly kind: 'drop'; readonly reason: string };
  readonly message_sending:
    | { readonly kind: 'rewrite'; readonly text: string }
    | { readonly kind: 'cancel'; readonly reason: string };
  /** `prompt` replaces the instructions. */
  readonly before_agent_start: {
    readonly kind: 'rewrite';
    readonly context?: string | undefined;
    readonly prompt?: string | undefined;
  };
  readonly agent_bootstrap: { readonly kind: 'rewrite'; readonly files: readonly HookFile[] };
  /** New input is checked against the tool's schema again. */
  readonly before_tool_call:
    | { readonly kind: 'rewrite'; readonly input: unknown }
    | { readonly kind: 'ask' }
    | Block;
  readonly after_tool_call: ResultChange;
  readonly tool_result_persist: ResultChange;
  readonly subagent_spawning: { readonly kind: 'refuse'; readonly reason: string };
};

/** A hook whose handlers decide, one after the other. */
export type DecidingHook = keyof HookDecisions;
/** A hook whose handlers only look, all at once. */
export type ObservingHook = Exclude<keyof HookEvents, DecidingHook> | `command:${string}`;
/** A hook's name. */
export type HookName = DecidingHook | ObservingHook;

/** The event that the hook sees. */
export type HookEvent<Name extends HookName> = Name extends keyof HookEvents ? HookEvents[Name] : HookCommand;
/** A decision that the hook's handlers may return. */
export type HookDecision<Name extends HookName> = Name extends DecidingHook ? HookDecisions[Name] : never;

/** The second parameter of a handler. */
export type HookContext = {
  /** Aborts when the time limit is over: from then on the answer no longer counts. */
  readonly signal: AbortSignal;
};

// biome-ignore lint/suspicious/noConfusingVoidType: a handler that only looks returns nothing
type NoDecision = undefined | void;

/**
 * Is called with each event. `tool_result_persist` must answer at once; every other hook may return a promise. Throwing,
 * an answer too late and an answer of another form are failures.
 */
export type HookHandler<Name extends HookName> = (
  event: HookEvent<Name>,
  context: HookContext,
) => Name extends 'tool_result_persist'
  ? HookDecision<Name> | NoDecision
  : HookDecision<Name> | NoDecision | Promise<HookDecision<Name> | NoDecision>;

/** Order and limits of a handler. */
export type HookOptions = {
  /** Higher ones are called first; equal ones in the order in which they were registered. */
  readonly priority?: number;
  /** Longest time for one event, ms. Without effect on `tool_result_persist`. */
  readonly timeoutMs?: number;
  /** Only `message_sending`: a failure blocks the message instead of letting it pass. */
  readonly guard?: boolean;
};

/** Registers handlers. */
export interface HookRegistry {
  on<Name extends HookName>(name: Name, handler: HookHandler<Name>, options?: HookOptions): void;
}

/** State of a registered handler, for `/hooks` and `parley hooks list`. */
export type HookState = {
  readonly event: HookName;
  /** The plugin, or the script. */
  readonly owner: string;
  /** `suspended`: it failed too often in a row. `off`: it can't be called; `problem` says why. */
  readonly state: 'active' | 'suspended' | 'off';
  readonly calls: number;
  readonly failures: number;
  readonly problem?: string;
};

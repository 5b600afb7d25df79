import type { AgentMessage, ToolCallData } from './message.ts';
import type { ModelEvent } from './model.ts';
import type { Authority } from './outcome.ts';
import type { ToolOutput } from './tool.ts';

/**
 * Events of the agent loop, in order. The consumer handles each event before the loop continues, so a durable
 * write in the handler of the assistant's `message_end` is a barrier before its tools start. `agent_end` is
 * always last and always once.
 */
export type AgentEvent =
  | { readonly type: 'agent_start' }
  | {
      readonly type: 'turn_start';
      readonly turn: number;
      /** The message of an earlier attempt whose calls this turn finishes; it makes no model call. */
      readonly resumes?: AgentMessage;
      /** The results that these calls have already. */
      readonly results?: readonly AgentMessage[];
    }
  | { readonly type: 'message_start'; readonly message: AgentMessage }
  | { readonly type: 'message_update'; readonly message: AgentMessage; readonly event: ModelEvent }
  /** `cost`: cost of the answer's model calls, micro-dollars; absent where none was counted. */
  | { readonly type: 'message_end'; readonly message: AgentMessage; readonly cost?: number }
  /** The call is looked at next. Every call that gets a result from this attempt has one, even if it never runs. */
  | { readonly type: 'tool_execution_start'; readonly call: ToolCallData }
  /** The call is prepared and permitted and runs next; a call that never runs has none. */
  | { readonly type: 'tool_execution_prepared'; readonly call: ToolCallData }
  | { readonly type: 'tool_execution_update'; readonly callId: string; readonly text: string }
  | {
      readonly type: 'tool_execution_end';
      readonly callId: string;
      readonly name: string;
      readonly result: ToolOutput;
      readonly isError: boolean;
    }
  /** The call waits for an answer from outside and has neither end nor result; the run ends as `parked`. */
  | {
      readonly type: 'tool_execution_parked';
      readonly callId: string;
      readonly name: string;
      readonly reason: string;
      /** Longest wait of the call, ms; absent: the default. */
      readonly waitMs?: number;
    }
  /** The call waits for a person's approval, and nothing of its group has started; the run ends as `parked`. */
  | { readonly type: 'tool_execution_asked'; readonly question: CallQuestion }
  | {
      readonly type: 'turn_end';
      /** Its finish reason may differ from that at `message_end`: `permission_denied`, `canceled`, `timeout`. */
      readonly message: AgentMessage;
      /** In source order. */
      readonly toolResults: readonly AgentMessage[];
    }
  | { readonly type: 'compaction_start'; readonly oldTokens: number; readonly threshold: number }
  | { readonly type: 'compaction_end'; readonly isDone: boolean }
  | {
      readonly type: 'agent_end';
      readonly messages: readonly AgentMessage[];
      readonly reason: EndReason;
      /** For the log; contains no secret. */
      readonly detail?: string;
    };

/** A call that a person has to approve before it runs. */
export type CallQuestion = {
  readonly callId: string;
  readonly tool: string;
  /** The arguments to run it with: checked, and as hooks have rewritten them. JSON. */
  readonly input: string;
  /** The call as the person sees it, whole. */
  readonly shown: string;
  /** Hash of what was described; binds an approval to this call. */
  readonly digest: string;
  /** The least trusted authority that may approve it: the tool's own. */
  readonly authority: Authority;
};

/** Why the agent loop ended. */
export type EndReason =
  | 'natural'
  | 'timeout'
  | 'idle'
  | 'aborted'
  | 'stopped'
  | 'compaction_failed'
  | 'model_error'
  | 'turn_limit'
  | 'loop_guard'
  /** Not over: it continues, as a resumed run, when its open calls have their results. Its turn has no end. */
  | 'parked'
  /** Something inside threw: a hook, a middleware, the conversion of the context. */
  | 'failed';

import type { ToolSpec } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import type { ContextSize } from './context-size.ts';
import type { Conversation } from './conversation.ts';
import type { AgentContext, AgentLoopConfig, TurnVerdict } from './loop-config.ts';
import type { LoopGuard } from './loop-guard.ts';
import type { RunScope } from './run-scope.ts';

/** State shared by all turns of a run. */
export type Run = {
  readonly config: AgentLoopConfig;
  readonly system: AgentContext['system'];
  readonly tools: ReadonlyMap<string, Tool>;
  readonly specs: readonly ToolSpec[];
  readonly conversation: Conversation;
  readonly scope: RunScope;
  readonly guard: LoopGuard;
  readonly callIds: Set<string>;
  readonly size: ContextSize;
  /** A compaction requested after a turn, to be done before the next one. */
  dueCompaction: Extract<TurnVerdict, { readonly kind: 'compact' }> | undefined;
};

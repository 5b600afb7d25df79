/**
 * The checks around a turn: each middleware may let the run continue, request a compaction, or stop the run. The loop
 * asks them before each model call and after each turn, one after another, in list order.
 */
import type { AgentEvent } from '#contracts/agent-event.ts';
import type { AgentMessage } from '#contracts/message.ts';
import { faultText } from './fault-text.ts';
import type { CompactionReason, TurnMiddleware, TurnState, TurnVerdict } from './loop-config.ts';
import type { RunEnd } from './model-turn.ts';
import { raceAbort } from './race-abort.ts';
import type { Run, RunScope } from './run-scope.ts';

type Compaction = Extract<TurnVerdict, { readonly kind: 'compact' }>;

/** Asks the middleware before a turn that adds the `arriving` messages. Returns why the run ends here, if it does. */
export async function* passBeforeTurn(
  run: Run,
  turn: number,
  arriving: readonly AgentMessage[],
): AsyncGenerator<AgentEvent, RunEnd | undefined, void> {
  const { config, scope } = run;
  const due = run.dueCompaction;
  run.dueCompaction = undefined;
  if (due !== undefined) {
    const end = yield* compactBetweenTurns(run, due);
    if (end !== undefined) return end;
  }
  for (const each of config.middleware ?? []) {
    const verdict = await ask(each, 'beforeTurn', stateOf(run, turn, arriving), scope);
    if (verdict.kind === 'ended') return verdict.end;
    if (verdict.kind !== 'compact') continue;
    const end = yield* compactBetweenTurns(run, verdict);
    if (end !== undefined) return end;
  }
  return undefined;
}

/** Asks the middleware after a turn. A requested compaction waits for the next turn of the run, if there is one. */
export async function passAfterTurn(run: Run, turn: number): Promise<RunEnd | undefined> {
  for (const each of run.config.middleware ?? []) {
    const verdict = await ask(each, 'afterTurn', stateOf(run, turn, []), run.scope);
    if (verdict.kind === 'ended') return verdict.end;
    if (verdict.kind === 'compact') run.dueCompaction ??= verdict;
  }
  return undefined;
}

/** Compacts and reloads the context, reporting this as events. `kept`: the history is unchanged. */
export async function* compactContext(
  run: Run,
  reason: CompactionReason,
  { oldTokens, threshold }: Pick<Compaction, 'oldTokens' | 'threshold'>,
): AsyncGenerator<AgentEvent, CompactionEnd, void> {
  const { config, conversation, scope } = run;
  const { compact, reloadMessages } = config;
  if (compact === undefined || reloadMessages === undefined) return { kind: 'kept' };
  yield { type: 'compaction_start', oldTokens, threshold };
  const compacted = await raceAbort(async () => {
    if ((await compact(reason, scope.signal)) === 'failed') return undefined;
    return await reloadMessages();
  }, scope.signal);
  const messages = compacted.kind === 'done' ? compacted.value : undefined;
  if (messages !== undefined) {
    conversation.replace(messages);
    run.size.reset();
  }
  yield { type: 'compaction_end', isDone: messages !== undefined };
  if (compacted.kind === 'aborted') return { kind: 'ended', end: endOfCut(scope) };
  if (messages !== undefined) return { kind: 'compacted' };
  return compacted.kind === 'failed'
    ? { kind: 'kept', detail: faultText(compacted.error) }
    : { kind: 'kept' };
}

export type CompactionEnd =
  | { readonly kind: 'compacted' }
  | { readonly kind: 'kept'; readonly detail?: string }
  | { readonly kind: 'ended'; readonly end: RunEnd };

/** Returns how a run ends after its signal was aborted. */
export function endOfCut(scope: RunScope): RunEnd {
  return { reason: scope.abortReason() ?? 'aborted' };
}

/** A failed compaction leaves the history unchanged and ends the run. */
async function* compactBetweenTurns(
  run: Run,
  compaction: Compaction,
): AsyncGenerator<AgentEvent, RunEnd | undefined, void> {
  const done = yield* compactContext(run, 'threshold', compaction);
  if (done.kind === 'ended') return done.end;
  if (done.kind === 'compacted') return undefined;
  return { reason: 'compaction_failed', ...(done.detail !== undefined && { detail: done.detail }) };
}

type HookVerdict = TurnVerdict | { readonly kind: 'ended'; readonly end: RunEnd };

async function ask(
  middleware: TurnMiddleware,
  when: 'beforeTurn' | 'afterTurn',
  state: TurnState,
  scope: RunScope,
): Promise<HookVerdict> {
  if (middleware[when] === undefined) return { kind: 'continue' };
  const asked = await raceAbort(async () => await middleware[when]?.(state), scope.signal);
  if (asked.kind === 'aborted') return { kind: 'ended', end: endOfCut(scope) };
  if (asked.kind === 'failed')
    return { kind: 'ended', end: { reason: 'failed', detail: faultText(asked.error) } };
  const verdict = asked.value ?? { kind: 'continue' };
  if (verdict.kind !== 'stop') return verdict;
  return { kind: 'ended', end: { reason: 'stopped', detail: verdict.detail } };
}

function stateOf(
  { conversation, size, cost }: Run,
  turn: number,
  arriving: readonly AgentMessage[],
): TurnState {
  const messages = arriving.length === 0 ? conversation.messages : [...conversation.messages, ...arriving];
  return {
    turn,
    messages,
    // A getter, because estimating reads every message.
    get stats() {
      return { contextTokens: size.tokens(messages), cost };
    },
  };
}

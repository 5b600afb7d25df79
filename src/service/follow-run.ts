import { ParleyError } from '#contracts/errors.ts';
import type { FeedEvent } from '#contracts/feed.ts';
import type { LagNote } from '../queue/feed.ts';
import type { RunResult } from '../store/reads/read-run-result.ts';

/** An event for the caller of `run`. Only the last one is `done`; it contains the complete answer or the fault. */
export type AgentServiceEvent = {
  readonly type: 'response' | 'summarize' | 'error';
  /** The answer so far, replacing any earlier one. */
  readonly message?: string;
  readonly error?: string;
  /** Share of the history that the summarising model has read, 0 to 1. */
  readonly progress?: number;
  readonly done: boolean;
};

export type FollowedRun = {
  /** Resolves with the run's id once its message is stored. */
  readonly accepted: Promise<{ readonly runId: string }>;
  readonly events: AsyncIterableIterator<FeedEvent | LagNote>;
  /** Resolves when the store has the run's end. Rejects only if the service fails. */
  ended(runId: string): Promise<RunResult>;
};

/** Reports a run's progress. Events only add speed: the end comes from the store, so a lost event does no harm. */
export async function* followRun({
  accepted,
  events,
  ended,
}: FollowedRun): AsyncGenerator<AgentServiceEvent, void, void> {
  try {
    const { runId } = await accepted;
    const end = ended(runId).then((result) => ({ result }));
    let message = '';
    for (let next = events.next(); ; ) {
      const step = await Promise.race([end, next]);
      if ('result' in step) return yield lastEvent(step.result);
      if (step.done) return yield lastEvent((await end).result);
      next = events.next();
      const event = step.value;
      if ('lagged' in event || !('runId' in event) || event.runId !== runId) continue;
      if (event.kind === 'compaction') yield summarizing(event);
      if (event.kind !== 'text' || event.of !== 'chat') continue;
      message = message.slice(0, event.at) + event.text;
      yield { type: 'response', message, done: false };
    }
  } catch (error) {
    const fault = error instanceof ParleyError ? error.message : 'internal';
    yield { type: 'error', error: fault, done: true };
  } finally {
    await events.return?.();
  }
}

function summarizing({ state, progress }: Extract<FeedEvent, { kind: 'compaction' }>): AgentServiceEvent {
  return {
    ...{ type: 'summarize', done: false },
    ...(progress !== undefined && { progress }),
    ...(state === 'failed' && { error: 'failed' }),
  };
}

function lastEvent(result: RunResult): AgentServiceEvent {
  if (result.kind !== 'ended') return { type: 'error', error: result.kind, done: true };
  const { outcome, reason, text } = result;
  if (outcome === 'answered' || outcome === 'silent') return { type: 'response', message: text, done: true };
  return { type: 'error', error: reason ?? outcome, done: true };
}

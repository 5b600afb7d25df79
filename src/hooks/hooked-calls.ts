import type { Clock } from '#contracts/clock.ts';
import type { CallObserver, CallOutcome } from '../models/observers/call-observer.ts';
import type { Hooks } from './hooks.ts';

/** Tells hooks about each attempt of a run at a model call. */
export function hookedCalls(hooks: Pick<Hooks, 'has' | 'observe'>, clock: Clock): CallObserver {
  return {
    begin: ({ provider, model, subject }) => {
      if (subject === undefined || !(hooks.has('before_model_call') || hooks.has('after_model_call')))
        return { end: () => undefined };
      const { runId, sessionId, agentId, purpose } = subject;
      const call = { provider, model, run: { runId, sessionId, agentId }, purpose };
      const startedAt = clock.now();
      void hooks.observe('before_model_call', call);
      return {
        end: (outcome) => {
          const durationMs = clock.now() - startedAt;
          void hooks.observe('after_model_call', { ...call, result: resultOf(outcome), durationMs });
        },
      };
    },
  };
}

function resultOf({ kind }: CallOutcome): 'answered' | 'failed' | 'stopped' {
  return kind === 'abandoned' ? 'stopped' : kind;
}

// A model that plays a script: one list of events per call, data in and events out.

import type { FinishReason } from '#contracts/message.ts';
import type { ModelEvent, ModelRequest, Usage } from '#contracts/model.ts';

export type Play =
  | readonly ModelEvent[]
  | ((request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>);

export type ScriptedModel = {
  readonly stream: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;
  readonly requests: readonly ModelRequest[];
};

/** Returns a model that answers call by call; after the end of the script it says 'done'. */
export function scriptedModel(...plays: readonly Play[]): ScriptedModel {
  const requests: ModelRequest[] = [];
  return {
    requests,
    stream: (request, signal) => {
      const play = plays[requests.length] ?? says('done');
      requests.push(request);
      return typeof play === 'function' ? play(request, signal) : replay(play);
    },
  };
}

async function* replay(events: readonly ModelEvent[]): AsyncGenerator<ModelEvent> {
  for (const event of events) yield event;
}

export const someUsage: Usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };

export function completes(finish: FinishReason): ModelEvent {
  return { type: 'complete', finish, usage: someUsage, cost: 7, model: 'scripted' };
}

export function says(text: string): readonly ModelEvent[] {
  return [
    { type: 'content_start' },
    { type: 'content_delta', text },
    { type: 'content_stop' },
    completes('end_turn'),
  ];
}

export type ScriptedCall = { readonly id: string; readonly name: string; readonly input?: unknown };

export function writesCall({ id, name, input = {} }: ScriptedCall): readonly ModelEvent[] {
  const json = typeof input === 'string' ? input : JSON.stringify(input);
  const middle = Math.floor(json.length / 2);
  return [
    { type: 'tool_use_start', id, name },
    { type: 'tool_use_delta', id, json: json.slice(0, middle) },
    { type: 'tool_use_delta', id, json: json.slice(middle) },
    { type: 'tool_use_stop', id },
  ];
}

export function callsTools(...calls: readonly ScriptedCall[]): readonly ModelEvent[] {
  return [...calls.flatMap(writesCall), completes('tool_use')];
}

/** Plays the events, then stays silent until the signal aborts. */
export function hangsAfter(events: readonly ModelEvent[]): Play {
  return async function* (_request, signal) {
    yield* events;
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    yield { type: 'error', failure: { kind: 'aborted', detail: 'aborted' } };
  };
}

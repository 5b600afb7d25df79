import { randomUUID } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';
import type {
  LlmProvider,
  ModelAnswer,
  ModelEvent,
  ModelInfo,
  ModelRequest,
  Usage,
} from '#contracts/model.ts';
import { type DemoCall, type DemoTurn, demoTurn } from './demo-script.ts';
import { failureError } from './model-failure.ts';
import { noPrices } from './prices.ts';

export type DemoOptions = {
  readonly clock: Clock;
  /** Delay between two words, ms. Default: 30 */
  readonly chunkMs?: number;
  /** Creates ids of tool calls, which must be unique across all conversations. */
  readonly newId?: () => string;
};

const info: ModelInfo = {
  id: 'demo',
  contextWindow: 200_000,
  maxOutputTokens: 4_000,
  answerTokens: 4_000,
  canThink: false,
  prices: noPrices,
};

/** Creates a free, scripted model that needs no key. Every answer except a title says that it is the demo model. */
export function createDemoProvider({ clock, chunkMs = 30, newId = randomUUID }: DemoOptions): LlmProvider {
  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const turn = demoTurn(request);
    const aborted: ModelEvent = { type: 'error', failure: { kind: 'aborted', detail: 'aborted' } };
    yield { type: 'content_start' };
    for (const text of wordsOf(turn.text)) {
      await clock.wait(turn.wordMs ?? chunkMs, signal);
      if (signal.aborted) return yield aborted;
      yield { type: 'content_delta', text };
    }
    yield { type: 'content_stop' };
    for (const call of turn.calls ?? []) {
      if (signal.aborted) return yield aborted;
      yield* callEvents(call, `demo_${newId()}`);
    }
    const finish = turn.calls === undefined ? 'end_turn' : 'tool_use';
    yield { type: 'complete', finish, usage: usageOf(request, turn), cost: 0, model: info.id };
  }

  async function send(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    if (signal.aborted) throw failureError({ kind: 'aborted', detail: 'aborted' });
    const turn = demoTurn(request);
    return { text: turn.text, usage: usageOf(request, turn), cost: 0, model: info.id };
  }

  return { id: 'demo', stream, send, model: () => info };
}

function* callEvents(call: DemoCall, id: string): Generator<ModelEvent> {
  yield { type: 'tool_use_start', id, name: call.name };
  yield { type: 'tool_use_delta', id, json: JSON.stringify(call.input) };
  yield { type: 'tool_use_stop', id };
}

/** Splits text into words, each with the white space after it. */
function wordsOf(text: string): readonly string[] {
  return text.match(/\s*\S+\s*/g) ?? [];
}

/** Estimates usage as characters / 4, so that context and cost displays have something to show. */
function usageOf(request: ModelRequest, turn: DemoTurn): Usage {
  return {
    inputTokens: Math.ceil(JSON.stringify([request.system, request.messages]).length / 4),
    outputTokens: Math.ceil(turn.text.length / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
}

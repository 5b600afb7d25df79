import type { LlmProvider, ModelEvent, ModelInfo, ModelRequest } from '../../src/contracts/model.ts';
import { now } from '../clock.ts';
import type { Histogram } from './histogram.ts';
import { answerTo, markOf } from './message.ts';

const info: ModelInfo = {
  id: 'instant',
  contextWindow: 200_000,
  maxOutputTokens: 4_000,
  answerTokens: 4_000,
  canThink: false,
  prices: { input: 0, output: 0, cacheWrite: 0, cacheRead: 0 },
};

const noUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** A model that answers immediately, so that everything around it is measured. */
export function instantModel(accepted: Histogram, onFirst: () => void): LlmProvider {
  let isFirst = true;
  async function* stream(request: ModelRequest): AsyncGenerator<ModelEvent> {
    if (isFirst) onFirst();
    isFirst = false;
    const question = lastText(request);
    accepted.add(now() - markOf(question).at);
    const text = answerTo(question);
    yield { type: 'content_start' };
    yield { type: 'content_delta', text };
    yield { type: 'content_stop' };
    const usage = {
      inputTokens: 100,
      outputTokens: Math.ceil(text.length / 4),
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    };
    yield { type: 'complete', finish: 'end_turn', usage, cost: 0, model: info.id };
  }
  return {
    id: 'instant',
    stream,
    // Summaries are requested this way.
    send: async () => ({ text: 'They talked.', usage: noUsage, cost: 0, model: info.id }),
    model: () => info,
  };
}

function lastText({ messages }: ModelRequest): string {
  const last = messages.at(-1);
  const texts = last?.role === 'user' ? last.content : [];
  return texts.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
}

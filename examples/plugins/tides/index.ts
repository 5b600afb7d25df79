/** A model provider: in parley.config.json, "providers": { "tides": { "kind": "plugin" } }, "model": "tides/parrot". */
import { definePlugin } from 'parley/plugin';

const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };

export const plugin = definePlugin({
  id: 'tides',
  setup(api) {
    api.providers.register('tides', (id) => ({
      id: 'tides',
      async *stream() {
        yield { type: 'content_start' };
        yield { type: 'content_delta', text: `I am ${id}.` };
        yield { type: 'content_stop' };
        yield { type: 'complete', finish: 'end_turn', usage, cost: 0, model: id };
      },
      send: async () => ({ text: `I am ${id}.`, usage, cost: 0, model: id }),
      model: () => ({
        ...{ id, contextWindow: 8_000, maxOutputTokens: 1_000, answerTokens: 1_000 },
        canThink: false,
        prices: free,
      }),
    }));
  },
});

import type { LlmProvider, ModelEvent, ModelInfo, ModelRequest } from '#contracts/model.ts';
import { noPrices } from '../models/prices.ts';

/** A model that says what the test has written down, one answer per call. */
export interface ScriptedModel {
  /** The next answer is this text. */
  says(text: string): void;
  /** The next answer calls a tool. */
  calls(tool: string, input: object): void;
  /** The next call fails. */
  fails(detail: string): void;
  /** Returns the requests so far. */
  requests(): readonly ModelRequest[];
}

type Turn =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly tool: string; readonly input: object }
  | { readonly kind: 'failure'; readonly detail: string };

const info: ModelInfo = {
  ...{ id: 'script', contextWindow: 200_000, maxOutputTokens: 4_000, answerTokens: 4_000 },
  canThink: false,
  prices: noPrices,
};

const usage = { inputTokens: 10, outputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** Creates the script, and the provider that follows it. */
export function createScriptedModel(): { readonly script: ScriptedModel; readonly provider: LlmProvider } {
  const turns: Turn[] = [];
  const requests: ModelRequest[] = [];
  let calls = 0;
  const next = (request: ModelRequest): Turn => {
    requests.push(request);
    return turns.shift() ?? { kind: 'text', text: '(The script has no more answers.)' };
  };
  async function* stream(request: ModelRequest): AsyncGenerator<ModelEvent> {
    const turn = next(request);
    if (turn.kind === 'failure') {
      yield { type: 'error', failure: { kind: 'failed', detail: turn.detail } };
      return;
    }
    if (turn.kind === 'text') {
      yield { type: 'content_start' };
      yield { type: 'content_delta', text: turn.text };
      yield { type: 'content_stop' };
    } else {
      calls += 1;
      const id = `call_${calls}`;
      yield { type: 'tool_use_start', id, name: turn.tool };
      yield { type: 'tool_use_delta', id, json: JSON.stringify(turn.input) };
      yield { type: 'tool_use_stop', id };
    }
    const finish = turn.kind === 'text' ? 'end_turn' : 'tool_use';
    yield { type: 'complete', finish, usage, cost: 0, model: info.id };
  }
  return {
    script: {
      says: (text) => void turns.push({ kind: 'text', text }),
      calls: (tool, input) => void turns.push({ kind: 'call', tool, input }),
      fails: (detail) => void turns.push({ kind: 'failure', detail }),
      requests: () => requests,
    },
    provider: {
      id: 'script',
      stream,
      send: async (request) => {
        const turn = next(request);
        return { text: turn.kind === 'text' ? turn.text : '', usage, cost: 0, model: info.id };
      },
      model: () => info,
    },
  };
}

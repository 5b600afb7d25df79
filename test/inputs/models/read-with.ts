/** Reads an answer with the real provider and SDK, and says what became of it. */
import type { LlmProvider, ModelEvent, ModelRequest } from '#contracts/model.ts';
import { createAnthropicProvider } from '../../../src/models/anthropic.ts';
import { createOpenAiProvider } from '../../../src/models/openai/openai.ts';
import { aRequest, listTool } from '../../models/builders.ts';

export type Api = 'openai' | 'anthropic';

/** What an answer is; absent fields are empty. */
export type Outcome = {
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: readonly (readonly [string, unknown])[];
  /** Tokens: prompt, answer, read from the cache, written to it. Absent: not counted. */
  readonly usage?: readonly [number, number, number, number];
  readonly finish?: string;
  readonly cost?: number;
  readonly sources?: readonly string[];
  readonly failure?: string;
};

const million = 1_000_000;
const prices = { input: 2 * million, output: 10 * million, cacheRead: million, cacheWrite: 3 * million };

export function providerAt(url: string, api: Api): LlmProvider {
  const access = { apiKeys: ['test-key'], prices };
  return api === 'openai'
    ? createOpenAiProvider({ ...access, model: 'some-model', baseUrl: `${url}/v1` })
    : createAnthropicProvider({ ...access, model: 'some-model', baseUrl: url });
}

export const withTools: ModelRequest = aRequest({ tools: [listTool] });

/** Returns the outcome of a streamed answer. */
export async function outcomeOf(provider: LlmProvider, request = withTools): Promise<Outcome> {
  return outcomeOfEvents(await eventsOf(provider, request));
}

export async function eventsOf(provider: LlmProvider, request = withTools): Promise<readonly ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of provider.stream(request, new AbortController().signal)) events.push(event);
  return events;
}

function outcomeOfEvents(events: readonly ModelEvent[]): Outcome {
  let [text, thinking] = ['', ''];
  const calls = new Map<string, { readonly name: string; json: string }>();
  for (const event of events) {
    if (event.type === 'content_delta') text += event.text;
    if (event.type === 'thinking_delta') thinking += event.thinking;
    if (event.type === 'content_recall') [text, thinking] = ['', text + thinking];
    if (event.type === 'tool_use_start') calls.set(event.id, { name: event.name, json: '' });
    const call = event.type === 'tool_use_delta' ? calls.get(event.id) : undefined;
    if (call && event.type === 'tool_use_delta') call.json += event.json;
  }
  const end = events.at(-1);
  return {
    ...(text !== '' && { text }),
    ...(thinking.trim() !== '' && { thinking: thinking.trim() }),
    ...(calls.size > 0 && {
      calls: [...calls.values()].map(({ name, json }) => [name, valueIn(json)] as const),
    }),
    ...(end?.type === 'complete' && completion(end)),
    ...(end?.type === 'error' && { failure: end.failure.kind }),
  };
}

function completion({
  finish,
  usage,
  isUncounted,
  sources,
}: Extract<ModelEvent, { type: 'complete' }>): Outcome {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return {
    finish,
    ...(!isUncounted && { usage: [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens] as const }),
    ...(sources && { sources: sources.map(({ url }) => url) }),
  };
}

function valueIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** Returns the events of a stream. */
export function sse(chunks: readonly (object | string)[], more: { readonly done?: boolean } = {}): string {
  const lines = chunks.map((chunk) =>
    typeof chunk === 'string' ? chunk : `data: ${JSON.stringify(chunk)}\n\n`,
  );
  return [...lines, ...(more.done === false ? [] : ['data: [DONE]\n\n'])].join('');
}

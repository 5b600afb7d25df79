import type { Clock } from '#contracts/clock.ts';
import type { LlmMessage, LlmProvider, ModelEvent, ModelRequest } from '#contracts/model.ts';

export function aRequest(overrides: Partial<ModelRequest> = {}): ModelRequest {
  return {
    system: [],
    messages: [aUserMessage('hello')],
    tools: [],
    maxTokens: 16_000,
    reasoning: 'off',
    ...overrides,
  };
}

export function aUserMessage(text: string): LlmMessage {
  return { role: 'user', content: [{ type: 'text', text }] };
}

export const listTool = {
  name: 'list',
  description: 'Lists a folder.',
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string' } },
    required: ['path'],
    additionalProperties: false,
  },
};

/** Collects the events of one answer, without those that show nothing. */
export async function eventsOf(
  provider: LlmProvider,
  request: ModelRequest = aRequest(),
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of provider.stream(request, signal))
    if (event.type !== 'progress') events.push(event);
  return events;
}

export function textIn(events: readonly ModelEvent[]): string {
  return events.flatMap((event) => (event.type === 'content_delta' ? [event.text] : [])).join('');
}

export function failureIn(events: readonly ModelEvent[]) {
  const last = events.at(-1);
  return last?.type === 'error' ? last.failure : undefined;
}

/** Returns a clock whose waits take no time and are recorded. */
export function aPatientClock(): Clock & { readonly waits: number[] } {
  const waits: number[] = [];
  let now = 0;
  return {
    waits,
    now: () => now,
    wait: async (ms) => {
      waits.push(ms);
      now += ms;
    },
  };
}

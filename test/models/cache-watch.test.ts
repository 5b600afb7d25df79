/** Why Anthropic's own server couldn't read a prompt from its cache, and what Parley knows about it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelEvent, ModelRequest } from '../../src/contracts/model.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { aRequest, aUserMessage, eventsOf, listTool } from './builders.ts';

let server: AnthropicServer;
beforeAll(async () => {
  server = await startAnthropicServer();
});
afterAll(() => server.close());

const model = 'claude-sonnet-5-5';
const access = { model, apiKeys: ['test-key'] };
/** Reaches the local server under the address of Anthropic's own. */
const anOwnServer = () =>
  createAnthropicProvider({
    ...access,
    fetch: (url, init) => fetch(String(url).replace('https://api.anthropic.com', server.url), init),
  });
const missIn = (events: readonly ModelEvent[]) => {
  const end = events.at(-1);
  return end?.type === 'complete' ? end.cacheMiss : end;
};
const prefix = expect.stringMatching(/^[\w-]{12}$/);
const askedFrom = (start: number) => server.requests.slice(start).map(({ body }) => body.diagnostics);

const first = aRequest({
  system: [{ text: 'You are Parley.', isStable: true }],
  tools: [listTool],
  conversation: 'one',
});
const said: ModelRequest['messages'] = [
  ...first.messages,
  { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] },
];
const next: ModelRequest = { ...first, messages: [...said, aUserMessage('and now?')] };

describe('prompt cache diagnostics', () => {
  it("asks about the cache with the previous answer's id, per conversation", async () => {
    server.script(() => ({ text: 'Hello.' }));
    const [start, provider] = [server.requests.length, anOwnServer()];
    for (const request of [first, { ...first, conversation: 'two' }, next]) await eventsOf(provider, request);
    await eventsOf(provider, aRequest());
    await provider.send(aRequest(), new AbortController().signal);
    expect(askedFrom(start)).toEqual([
      { previous_message_id: null },
      { previous_message_id: null },
      { previous_message_id: expect.stringMatching(/^msg_/) },
      undefined,
      undefined,
    ]);
  });

  it("asks about the cache only at Anthropic's own server", async () => {
    server.script(() => ({ text: 'Hello.', cacheMiss: 'system_changed' }));
    const start = server.requests.length;
    const provider = createAnthropicProvider({ ...access, baseUrl: server.url });
    expect([missIn(await eventsOf(provider, first)), missIn(await eventsOf(provider, next))]).toEqual([
      undefined,
      undefined,
    ]);
    expect(askedFrom(start)).toEqual([undefined, undefined]);
  });

  it('stops asking about the cache if the question is refused', async () => {
    server.script((_, count) =>
      count === 1
        ? { status: 400, message: 'diagnostics: Extra inputs are not permitted' }
        : { text: 'Hello.' },
    );
    const [start, provider] = [server.requests.length, anOwnServer()];
    for (const request of [first, next])
      expect((await eventsOf(provider, request)).at(-1)).toMatchObject({ type: 'complete' });
    expect(askedFrom(start)).toEqual([{ previous_message_id: null }, undefined, undefined]);
  });

  it.each<{ what: string; reason: string; old?: ModelRequest; now: ModelRequest; changed: string }>([
    {
      what: 'instructions',
      reason: 'system_changed',
      now: { ...next, system: [{ text: 'You are brief.', isStable: true }] },
      changed: 'system',
    },
    { what: 'tools', reason: 'tools_changed', now: { ...next, tools: [] }, changed: 'tools' },
    {
      what: 'a shorter history',
      reason: 'messages_changed',
      old: next,
      now: first,
      changed: 'messages',
    },
    {
      what: 'another history of the same length',
      reason: 'messages_changed',
      now: { ...next, messages: [aUserMessage('hullo'), ...next.messages.slice(1)] },
      changed: 'messages',
    },
  ])('explains a cache miss by a change of Parley: $what', async ({ reason, old = first, now, changed }) => {
    server.script((_, count) => (count === 1 ? { text: 'Hello.' } : { text: 'Yes.', cacheMiss: reason }));
    const provider = anOwnServer();
    expect(missIn(await eventsOf(provider, old))).toBeUndefined();
    expect(missIn(await eventsOf(provider, now))).toEqual({ reason, changed: [changed], prefix });
  });

  it.each(['model_changed', 'system_changed', 'tools_changed', 'messages_changed'])(
    'reports the miss %s as unexplained if the request only adds to the previous one',
    async (reason) => {
      server.script(() => ({ text: 'Hello.', cacheMiss: reason }));
      const provider = anOwnServer();
      await eventsOf(provider, first);
      const unexplained = { reason, changed: [], prefix, isUnexplained: true };
      expect(missIn(await eventsOf(provider, next))).toEqual(unexplained);
      expect(missIn(await eventsOf(provider, { ...first, conversation: 'another' }))).toBeUndefined();
    },
  );

  it.each(['previous_message_not_found', 'unavailable', 'moon_changed'])(
    'reports the miss %s, which concerns no part of a request, without blame',
    async (reason) => {
      server.script(() => ({ text: 'Hello.', cacheMiss: reason }));
      const provider = anOwnServer();
      await eventsOf(provider, first);
      expect(missIn(await eventsOf(provider, next))).toEqual({ reason, changed: [], prefix });
    },
  );

  it('reports no cache miss while its reason is pending', async () => {
    server.script(() => ({ text: 'Hello.', cacheMiss: 'pending' }));
    const provider = anOwnServer();
    await eventsOf(provider, first);
    expect(missIn(await eventsOf(provider, next))).toBeUndefined();
  });
});

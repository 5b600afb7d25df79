import { expect, it, vi } from 'vitest';
import type { Capabilities } from '../../src/contracts/capabilities.ts';
import type { ChannelAdapter, HostedChannel } from '../../src/contracts/channel.ts';
import type { MessageId } from '../../src/contracts/ids.ts';
import type { Outbound } from '../../src/contracts/outbound.ts';
import type { Display } from '../../src/runs/agents.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, completes, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aStore } from '../support/own-store.ts';
import { playNext, runSettings } from './run-builders.ts';

/** Reads what was sent in a conversation, without previews: kind and text of each part. */
const readSent: StoreQuery<string, readonly string[]> = {
  query: 'readSent',
  run: async (tx, conversationKey) => {
    const parts = tx.db.selectFrom('outbox').select('content').where('conversationKey', '=', conversationKey);
    const rows = await parts.where('purpose', '<>', 'preview').orderBy('place').execute();
    return rows.map(({ content }) => {
      const { kind, text } = JSON.parse(content);
      return text === undefined ? kind : `${kind}: ${text.text}`;
    });
  },
};

/** Resolves once the preview has had this text. */
type Seen = (text: string) => Promise<void>;

type Scene = { readonly display: Partial<Display>; readonly over?: object };

/** Plays a run on a network that edits messages; `shown`: the texts that its preview has had. */
async function play(plays: readonly Play[] | ((seen: Seen) => readonly Play[]), { display, over }: Scene) {
  const { store } = await aStore();
  const { laneKey, say, conversationKey } = aConversation(store);
  await say('go');
  const shown: string[] = [];
  const send = async ({ content }: Outbound) => {
    if (content.kind === 'text' || content.kind === 'edit') shown.push(content.text.text);
    return { kind: 'sent', receipts: ['1' as MessageId] } as const;
  };
  const capabilities: Capabilities = {
    ...plainCapabilities,
    preview: { dm: 'edit', group: 'edit' },
    previewIntervalMs: { dm: 1, group: 1 },
  };
  const adapter: Pick<ChannelAdapter, 'send'> = { send };
  const channel = { adapter, definition: { capabilities } } as unknown as HostedChannel;
  const settings = {
    ...runSettings,
    isPreviewOn: true,
    displayOn: () => ({ ...runSettings.displayOn(''), ...display }),
  };
  const seen: Seen = (text) => vi.waitFor(() => expect(shown).toContain(text));
  const tools = [
    aTool('look', { execute: async () => ({ text: 'fine' }) }),
    aTool('fail', { execute: () => Promise.reject(new Error('no such city')) }),
  ];
  await playNext(store, laneKey, {
    model: scriptedModel(...(typeof plays === 'function' ? plays(seen) : plays)),
    tools,
    over: { channelFor: () => channel, settings, ...over },
  });
  return { shown, sent: await store.read(readSent, conversationKey) };
}

const look = callsTools({ id: 'c1', name: 'look', input: { city: 'Rome' } });
const fail = callsTools({ id: 'c2', name: 'fail', input: { city: 'Rom' } });
const verbose = { verbose: 'on', stream: 'off' } as const;

it('lists every finished call before the answer in verbose mode, errors with their reason', async () => {
  const beside = [
    { type: 'content_start' } as const,
    { type: 'content_delta', text: 'One moment.' } as const,
  ];
  const spoken = [...beside, { type: 'content_stop' } as const, ...look];
  const { sent } = await play([spoken, fail, says('It is fine.')], { display: verbose });
  expect(sent).toEqual(['text: 💬 One moment.\n⚙ look: Rome\n⚠ fail: no such city', 'text: It is fine.']);
});

it('lists no calls without verbose mode, and none with silence', async () => {
  expect((await play([look, says('Fine.')], { display: { stream: 'off' } })).sent).toEqual(['text: Fine.']);
  expect((await play([look, says('NO_REPLY')], { display: verbose })).sent).toEqual([]);
});

it('removes secrets from the lines about calls', async () => {
  const over = { redact: (text: string) => text.replaceAll('Rome', '[hidden]') };
  const { sent } = await play([look, says('Fine.')], { display: verbose, over });
  expect(sent[0]).toBe('text: ⚙ look: [hidden]');
});

it('makes the preview the list of calls, and sends the answer after it', async () => {
  const answer = (seen: Seen): Play =>
    async function* () {
      yield { type: 'content_start' };
      yield { type: 'content_delta', text: 'It is' };
      await seen('⚙ look: Rome\n\nIt is');
      yield { type: 'content_delta', text: ' fine.' };
      yield completes('end_turn');
    };
  const { sent } = await play((seen) => [look, answer(seen)], { display: { verbose: 'on' } });
  expect(sent).toEqual(['edit: ⚙ look: Rome', 'text: It is fine.']);
});

const thinks = (thinking: string) => ({ type: 'thinking_delta', thinking }) as const;

it('quotes the reasoning in front of the answer, and none with silence', async () => {
  const on = { display: { reasoning: 'on', stream: 'off' } } as const;
  expect((await play([[thinks('Rome is hot.'), ...says('Hot.')]], on)).sent).toEqual([
    'text: 💭 Rome is hot.\n\nHot.',
  ]);
  expect((await play([[thinks('Nobody asked me.'), ...says('NO_REPLY')]], on)).sent).toEqual([]);
});

it('shows reasoning while the model thinks, as a message before the answer; silence removes it', async () => {
  const streaming = (seen: Seen, text: string): Play =>
    async function* () {
      yield thinks('Rome is hot.');
      await seen('💭 Rome is hot.');
      yield* says(text);
    };
  const stream = { display: { reasoning: 'stream' } } as const;
  const { sent } = await play((seen) => [streaming(seen, 'Hot.')], stream);
  expect(sent).toEqual(['edit: 💭 Rome is hot.', 'text: Hot.']);
  expect((await play((seen) => [streaming(seen, 'NO_REPLY')], stream)).sent).toEqual(['delete']);
});

it('shows nothing beside the answer while a hook judges messages', async () => {
  const over = {
    hooks: {
      has: (name: string) => name === 'message_sending',
      observe: async () => undefined,
      decide: async (_name: string, event: object) => ({ kind: 'continue', event }),
    },
  };
  const display = { verbose: 'on', reasoning: 'on' } as const;
  const { sent, shown } = await play([[thinks('Hm.'), ...look], says('Fine.')], { display, over });
  expect(shown).toEqual([]);
  expect(sent).toEqual(['text: Fine.']);
});

import { expect, it, vi } from 'vitest';
import type { Capabilities } from '../../src/contracts/capabilities.ts';
import type { ChannelAdapter, HostedChannel } from '../../src/contracts/channel.ts';
import type { MessageId } from '../../src/contracts/ids.ts';
import type { ModelEvent } from '../../src/contracts/model.ts';
import { markStopped } from '../../src/replies/preview.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aConversation } from '../store/a-conversation.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { aStore } from '../support/own-store.ts';
import { playNext, runSettings } from './run-builders.ts';

/** Reads what was sent in a conversation, without previews: the kind and the text of each part. */
const readSent: StoreQuery<string, readonly unknown[]> = {
  query: 'readSent',
  run: async (tx, conversationKey) => {
    const parts = tx.db.selectFrom('outbox').select('content').where('conversationKey', '=', conversationKey);
    const rows = await parts.where('purpose', '<>', 'preview').orderBy('place').execute();
    return rows.map((row) => {
      const { kind, text } = JSON.parse(row.content);
      return text === undefined ? kind : `${kind}: ${text.text}`;
    });
  },
};

it('sends nothing of an answer that another process stopped before it was stored', async () => {
  const { store } = await aStore();
  const { laneKey, say, command, conversationKey } = aConversation(store);
  await say('go');
  const model = scriptedModel(async function* () {
    await command({ kind: 'stop', isPrivileged: true, isAll: false });
    yield* says('too late');
  });
  const { exit } = await playNext(store, laneKey, { model });
  expect(exit).toEqual({ kind: 'idle' });
  const { inbox, openRuns } = await readLane(store, laneKey);
  expect({ openRuns, outcomes: inbox.map(({ outcome }) => outcome) }).toEqual({
    openRuns: 0,
    outcomes: ['cancelled'],
  });
  // The command's own answer, and nothing after it.
  expect(await store.read(readSent, conversationKey)).toEqual(['text: Stopped.']);
});

type Style = Capabilities['preview']['dm'];

/** Plays a run that is stopped once its model has written `events`; `waitsFor`: how many calls have shown something. */
async function stopAfter(events: readonly ModelEvent[], style: Style, waitsFor: number) {
  const { store } = await aStore();
  const { laneKey, say, command, conversationKey } = aConversation(store);
  await say('go');
  const shown: string[] = [];
  const send: ChannelAdapter['send'] = async () => ({
    kind: 'sent',
    receipts: [`${shown.push('sent')}` as MessageId],
  });
  const preview = { draft: async () => void shown.push('draft') };
  const capabilities: Capabilities = {
    ...plainCapabilities,
    preview: { dm: style, group: style },
    previewIntervalMs: { dm: 5, group: 5 },
  };
  const channel = { adapter: { send, preview }, definition: { capabilities } } as unknown as HostedChannel;
  await playNext(store, laneKey, {
    model: scriptedModel(async function* (_request, signal) {
      yield { type: 'content_start' };
      yield* events;
      await vi.waitFor(() => expect(shown).toHaveLength(waitsFor));
      await command({ kind: 'stop', isPrivileged: true, isAll: false });
      yield* says(' and never ends');
      signal?.throwIfAborted();
    }),
    over: { channelFor: () => channel, settings: { ...runSettings, isPreviewOn: true } },
  });
  const { inbox } = await readLane(store, laneKey);
  expect(inbox.map(({ outcome }) => outcome)).toEqual(['cancelled']);
  return { sent: await store.read(readSent, conversationKey) };
}

const delta = (text: string) => ({ type: 'content_delta', text }) as const;

it.each([
  ['edit', 'edit: A half answer\n\n⏹ Stopped'],
  ['draft', 'text: A half answer\n\n⏹ Stopped'],
] as const)(
  'keeps what an answer has shown as %s when a person stops it, marked as stopped',
  async (style, kept) => {
    const { sent } = await stopAfter([delta('A **half** answer')], style, 1);
    expect(sent).toEqual(['text: Stopped.', kept]);
  },
);

it.each([
  ['previews are off', [delta('A half answer')], 'none'],
  ['it may yet be silent', [delta('NO_REP')], 'edit'],
  ['only reasoning was written', [{ type: 'thinking_delta', thinking: 'Hm' }], 'draft'],
] as const)('sends nothing of a stopped answer if %s', async (_, events, style) => {
  const { sent } = await stopAfter(events, style, 0);
  expect(sent).toEqual(['text: Stopped.']);
});

it('fits the marked text of a stopped answer into one message', () => {
  const marked = markStopped({ text: 'word '.repeat(20), spans: [] }, '⏹ Stopped', { maxLength: 60 });
  expect(marked.text).toMatch(/^(?:word )+word…\n\n⏹ Stopped$/);
  expect(marked.text.length).toBeLessThanOrEqual(60);
});

/** Files of messages from their fetch to the transcript: each has one end, and is shown once. */
import { expect, it } from 'vitest';
import type { AttachmentRef, FileReading, StoredAttachment } from '#contracts/attachment.ts';
import { textOf } from '#contracts/message.ts';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import { expireMedia, type MediaFile, storeFetched } from '../../../src/store/intake/media.ts';
import { readReceivedFiles } from '../../../src/store/reads/read-received-files.ts';
import { readHistory } from '../../../src/store/reads/read-transcript.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { aConversation } from '../a-conversation.ts';
import { describeEachDatabase } from '../each-database.ts';

const texts = textsFor('en');
const voice: AttachmentRef = { ref: 'v', kind: 'voice', name: 'voice' };
const pending: FileReading = { kind: 'pending' };
const heard: FileReading = { kind: 'transcript', text: 'call me' };

function stored(reading?: FileReading, over: { readonly isViewOnce?: true } = {}): StoredAttachment {
  const facts = { path: 'item.00000001', mimeType: 'audio/ogg', sizeBytes: 9, name: 'voice' };
  return { kind: 'stored', ...facts, sentAs: 'voice', ...(reading && { reading }), ...over };
}

const sentTexts: StoreQuery<{ readonly conversationKey: string }, readonly { readonly content: string }[]> = {
  query: 'sentTexts',
  run: (tx, { conversationKey }) =>
    tx.db.selectFrom('outbox').select('content').where('conversationKey', '=', conversationKey).execute(),
};

const itemOf: StoreQuery<{ readonly id: string }, { readonly content: string; readonly isFetching: number }> =
  {
    query: 'itemOf',
    run: (tx, { id }) =>
      tx.db
        .selectFrom('inbox')
        .select(['content', 'isFetching'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow(),
  };

describeEachDatabase('the files of a message', (open, { sql }) => {
  const receive = async () => {
    const scene = aConversation(open());
    const id = crypto.randomUUID();
    const sender = { id: 'ann', name: 'Ann' };
    const content = { text: 'hi', prompt: 'hi', sender, sentAt: 1, attachments: [voice] };
    await scene.worker.accept(scene.saying('hi', { item: { id, content } }));
    const store = (files: readonly StoredAttachment[], more: object = {}) =>
      open().write(storeFetched, { inboxId: id, attachments: [voice], stored: files, joinMs: 0, ...more });
    const shown = async (sessionId: string) =>
      (await open().read(readHistory, { sessionId })).map(({ parts }) => textOf(parts)).join('\n');
    const notices = async () =>
      (await open().read(sentTexts, scene)).map(({ content }) => JSON.parse(content).text.text);
    return { ...scene, id, store, shown, notices };
  };

  it('keeps a message waiting while its files are read, and tells its sender once', async () => {
    const { store, claim, claimRun, laneKey, shown, notices } = await receive();
    await store([stored(pending)], { readMs: 60_000 });
    expect((await claim()).kind).not.toBe('run');
    const said = { readMs: 0, notices: [{ key: `${laneKey}:heard`, text: '🎙' }] };
    await store([stored(heard)], said);
    await store([stored(heard)], said);
    const run = await claimRun();
    expect(await shown(run.sessionId)).toMatch(/written down by a machine, perhaps wrongly\]\ncall me/);
    expect(await notices()).toEqual(['🎙']);
  });

  it('ends a file that is still being read when its message is taken, and tells its sender', async () => {
    const { store, claimRun, shown, notices, id } = await receive();
    await store([stored(pending)], { readMs: 0 });
    const run = await claimRun();
    expect(await shown(run.sessionId)).toContain(`not read: ${texts.fileNotReadInTime}`);
    await store([stored(heard)]);
    const row = await open().read(itemOf, { id });
    expect(row.isFetching).toBe(0);
    expect(JSON.parse(row.content).stored).toMatchObject([{ reading: { kind: 'unread' } }]);
    expect(await notices()).toEqual([`I couldn’t read “voice” (${texts.fileNotReadInTime}).`]);
  });

  it('removes what was said in a message that may be heard once, and keeps it otherwise', async () => {
    for (const isOnce of [true, false]) {
      const { store, claimRun, shown, answer, id } = await receive();
      await store([stored(heard, isOnce ? { isViewOnce: true } : {})]);
      const run = await claimRun();
      await answer(run, 'done');
      await sql(`update "outbox" set "state" = 'sent'`);
      const files: readonly MediaFile[] = [{ inboxId: id, name: 'item.00000001' }];
      expect(await open().write(expireMedia, { files })).toEqual(['item.00000001']);
      expect((await shown(run.sessionId)).includes('call me')).toBe(!isOnce);
    }
  });

  it('shows the files of its own session only, and none that may be seen once', async () => {
    const { store, claimRun, laneKey } = await receive();
    await store([stored(heard), stored(undefined, { isViewOnce: true })]);
    const { sessionId } = await claimRun();
    const read = (of: { laneKey: string; sessionId: string }) => open().read(readReceivedFiles, of);
    expect(await read({ laneKey, sessionId })).toMatchObject([{ path: 'item.00000001' }]);
    expect(await read({ laneKey, sessionId: 'another' })).toEqual([]);
    expect(await read({ laneKey: 'another', sessionId })).toEqual([]);
  });
});

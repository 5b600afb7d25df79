/** Files of a group's remembered messages come with the message that calls the agent. */

import { expect, it } from 'vitest';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundMessage } from '#contracts/envelope.ts';
import { messageId } from '#contracts/ids.ts';
import { type MessagePart, textOf } from '../../src/contracts/message.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { readPendingFetch, storeFetched } from '../../src/store/intake/media.ts';
import { readLeftFiles } from '../../src/store/rows/left-files.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { anAccount, createIntakeFixture } from './support/intake-fixture.ts';

const aMessage = (over: Partial<InboundMessage> = {}): InboundMessage => ({
  kind: 'message',
  messageId: messageId(crypto.randomUUID()),
  text: '',
  provenance: 'typed',
  attachments: [],
  mentionsBot: false,
  repliesToBot: false,
  ...over,
});
const aPhoto = (ref: string, over: Partial<AttachmentRef> = {}): AttachmentRef => ({
  ref,
  kind: 'image',
  ...over,
});
const showing = (ref: string, over: Partial<AttachmentRef> = {}) =>
  aMessage({ attachments: [aPhoto(ref, over)] });
const calling = (over: Partial<InboundMessage> = {}) =>
  aMessage({ text: 'what is this?', mentionsBot: true, ...over });

const lastParts: StoreQuery<{ readonly laneKey: string }, readonly MessagePart[]> = {
  query: 'lastParts',
  run: async (tx, { laneKey }) => {
    const row = await tx.db
      .selectFrom('transcript')
      .innerJoin('lanes', 'lanes.sessionId', 'transcript.sessionId')
      .select('transcript.parts')
      .where('lanes.key', '=', laneKey)
      .orderBy('transcript.position', 'desc')
      .executeTakeFirstOrThrow();
    return json.parts(row.parts);
  },
};

describeEachDatabase('a picture that a group has seen', (open) => {
  function aGroup() {
    const town = createIntakeFixture(open());
    const ann = anAccount('alpha');
    const bea = anAccount('alpha');
    const scene = { group: `${ann.peer}-g` };
    const send = (message: InboundMessage, from = ann) => town.send(from, message, scene);
    const call = async (over: Partial<InboundMessage> = {}) => {
      const accepted = await send(calling(over));
      if (accepted.kind !== 'accepted') throw new Error(`expected an item, not ${accepted.kind}`);
      return { inboxId: accepted.inboxId, laneKey: town.laneOf(accepted) };
    };
    const pending = async (inboxId: string) =>
      (await open().read(readPendingFetch, { inboxId }))?.attachments ?? [];
    const refs = async (inboxId: string) => (await pending(inboxId)).map(({ ref }) => ref);
    const fetched = async (inboxId: string, attachments = [] as Awaited<ReturnType<typeof pending>>) => {
      const stored = attachments.map(({ ref, of }) => ({
        ...({ kind: 'stored', path: ref, mimeType: 'image/png', sizeBytes: 1, name: ref } as const),
        ...(of !== undefined && { of }),
      }));
      await open().write(storeFetched, { inboxId, attachments, stored, joinMs: 0 });
    };
    const left = async () => {
      const rows = await open().read(readLeftFiles, { limit: 1000 });
      const ours = rows.filter(({ route }) => String(route.conversation) === scene.group);
      return ours.flatMap(({ files }) => files.map(({ ref }) => ref)).sort();
    };
    const remove = (of: InboundMessage, from = ann) =>
      town.send(from, { kind: 'delete', messageId: of.messageId }, scene);
    return { town, ann, bea, scene, send, call, pending, refs, fetched, left, remove };
  }

  it("fetches an overheard picture with the message that calls the agent, and shows it as the earlier one's", async () => {
    const { town, bea, send, call, pending, fetched } = aGroup();
    expect(await send(showing('shown'), bea)).toEqual({
      kind: 'ignored',
      reason: 'not-mentioned',
      keepsFiles: true,
    });
    const { inboxId, laneKey } = await call({ attachments: [aPhoto('own')] });
    const files = await pending(inboxId);
    expect(files.map(({ ref }) => ref)).toEqual(['own', 'shown']);
    await fetched(inboxId, files);
    await town.worker.claimRun(laneKey);
    const [, own, intro, earlier] = await open().read(lastParts, { laneKey });
    expect([own, earlier]).toMatchObject([{ data: { path: 'own' } }, { data: { path: 'shown' } }]);
    expect(intro && textOf([intro])).toContain(`came with an earlier message by Person ${bea.peer};`);
  });

  it('shows an overheard picture once, and not again with a second message or in a quote', async () => {
    const { town, send, call, pending, refs, fetched, left } = aGroup();
    await send(showing('one', { fileId: 'f1' }));
    const quote = { text: '', attachments: [aPhoto('one-again', { fileId: 'f1' })] };
    const first = await call({ quote });
    expect(await refs(first.inboxId)).toEqual(['one-again']);
    const second = await call();
    expect(await refs(second.inboxId)).toEqual([]);
    await fetched(first.inboxId, await pending(first.inboxId));
    const run = await town.worker.claimRun(first.laneKey);
    await town.worker.answer(run, 'ok');
    expect(await refs((await call()).inboxId)).toEqual([]);
    expect(await left()).toEqual([]);
  });

  it('fetches the picture of the message on which a thread was started', async () => {
    const { send, call, pending } = aGroup();
    const quote = { text: '', author: 'Bea', attachments: [aPhoto('begin')] };
    await send(aMessage({ quote, provenance: 'quoted', described: ['[This thread …]'], startsNoRun: true }));
    await send(aMessage({ text: 'look', quote: { ...quote, attachments: [aPhoto('other')] } }));
    expect(await pending((await call()).inboxId)).toMatchObject([
      { ref: 'begin', of: 'the quoted message by Bea' },
    ]);
  });

  it('fetches an overheard picture with the next call if the first one was deleted', async () => {
    const { send, call, refs, remove } = aGroup();
    await send(showing('one'));
    const typo = calling();
    await send(typo);
    await remove(typo);
    expect(await refs((await call()).inboxId)).toEqual(['one']);
  });

  it('fetches the newest four overheard pictures and releases all other files', async () => {
    const { town, send, call, pending, refs, fetched, left } = aGroup();
    for (let count = 1; count <= 6; count++) await send(showing(`p${count}`));
    await send(showing('film', { kind: 'video' }));
    await send(showing('secret', { isViewOnce: true }));
    const { inboxId, laneKey } = await call();
    expect(await refs(inboxId)).toEqual(['p3', 'p4', 'p5', 'p6']);
    await fetched(inboxId, await pending(inboxId));
    await town.worker.claimRun(laneKey);
    expect(await left()).toEqual(['film', 'p1', 'p2', 'secret']);
  });

  it("doesn't fetch an overheard picture that was deleted, even while its call waits", async () => {
    const { town, ann, bea, send, call, refs, pending, fetched, left, remove } = aGroup();
    const [gone, deleted] = [showing('gone'), showing('deleted')];
    await send(gone, bea);
    await send(deleted, bea);
    await remove(gone, bea);
    const { inboxId, laneKey } = await call({ attachments: [aPhoto('own')] });
    const before = await pending(inboxId);
    expect(before.map(({ ref }) => ref)).toEqual(['own', 'deleted']);
    expect(await remove(deleted, ann)).toMatchObject({ kind: 'ignored' });
    expect(await remove(deleted, bea)).toEqual({ kind: 'noted', effect: 'context-removed' });
    expect(await refs(inboxId)).toEqual(['own']);
    expect(await left()).toEqual(['deleted', 'gone']);
    // The fetch that was under way ends, and its other files count.
    await fetched(inboxId, before);
    await town.worker.claimRun(laneKey);
    const parts = await open().read(lastParts, { laneKey });
    expect(parts.filter(({ type }) => type === 'binary')).toMatchObject([{ data: { path: 'own' } }]);
    expect(JSON.stringify(parts)).not.toContain('deleted');
  });

  it('releases an overheard picture on its network when it is forgotten unseen', async () => {
    const { town, ann, scene, send, left } = aGroup();
    for (let count = 0; count <= 50; count++) await send(showing(`p${count}`));
    expect(await left()).toEqual(['p0']);
    const laneKey = town.laneOf(await town.send(ann, '/new', { ...scene, isAdmin: true }));
    await town.worker.claim(laneKey);
    expect(await left()).toContain('p50');
  });
});

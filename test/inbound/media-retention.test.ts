import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import { textOf } from '#contracts/message.ts';
import { readItems } from '../../src/channel-host/timeline.ts';
import { renderTrace } from '../../src/cli/render-trace.ts';
import { newMediaName, newOutgoingName } from '../../src/inbound/media.ts';
import { removeOldMedia } from '../../src/inbound/media-retention.ts';
import { conversationKeyOf } from '../../src/store/base/keys.ts';
import { storeToolParts } from '../../src/store/delivery/tool-send.ts';
import { expireMedia, storeFetched } from '../../src/store/intake/media.ts';
import { readTimeline } from '../../src/store/reads/read-timeline.ts';
import { readHistory } from '../../src/store/reads/read-transcript.ts';
import { readWhy } from '../../src/store/reads/why/read-why.ts';
import { aCourier } from '../store/a-conversation.ts';
import { aLane, aMessage, aWorker, routeFor, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { silentLog } from '../support/silent-log.ts';

const dayMs = 86_400_000;

describeEachDatabase('stored files', (open, { sql }) => {
  /** Returns a media folder, and messages with one file in it each, `days` old. */
  async function aFolder() {
    const dataDir = await mkdtemp(join(tmpdir(), 'parley-media-'));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    const mediaDir = join(dataDir, 'media');
    await mkdir(mediaDir);
    const put = async (name: string, days: number) => {
      const path = join(mediaDir, name);
      const at = (Date.now() - days * dayMs) / 1000;
      await writeFile(path, 'bytes');
      await utimes(path, at, at);
      return name;
    };
    const worker = aWorker(open());
    const receive = async (days: number, named: { readonly isViewOnce?: boolean } = {}) => {
      const conversation = unique('c');
      const proposal = aMessage({ conversation, text: 'Read this' });
      if (proposal.decision.kind !== 'accept') throw new Error('unreachable');
      const { item } = proposal.decision;
      const attachments: readonly AttachmentRef[] = [{ ref: 'r', kind: 'file', name: 'a.pdf' }];
      const content = { ...item.content, attachments };
      await worker.accept({ ...proposal, decision: { kind: 'accept', item: { ...item, content } } });
      const name = await put(newMediaName(item.id, named), days);
      const file = { path: name, mimeType: 'application/pdf', sizeBytes: 5, name: 'a.pdf' };
      const stored = [{ kind: 'stored', ...file }] as const;
      await open().write(storeFetched, { inboxId: item.id, attachments, stored, joinMs: 0 });
      return { id: item.id, name, path: join(mediaDir, name), laneKey: aLane(conversation).key };
    };
    const take = async (days: number) => {
      const file = await receive(days);
      return { ...file, run: await worker.claimRun(file.laneKey, 600_000) };
    };
    const answer = async (days: number) => {
      const file = await take(days);
      await worker.answer(file.run, 'done');
      return file;
    };
    const tidy = (which?: 'view-once') =>
      removeOldMedia(
        { store: open(), clock: systemClock, log: silentLog, mediaDir, keepMs: 30 * dayMs },
        new AbortController().signal,
        which,
      );
    return { dataDir, mediaDir, put, receive, take, answer, tidy, kept: () => readdir(mediaDir) };
  }

  it('removes view-once files at the end of their turn, and not before', async () => {
    const { receive, put, tidy, kept } = await aFolder();
    const once = await receive(0, { isViewOnce: true });
    const other = await receive(0);
    const fetchedNow = await put(newMediaName(crypto.randomUUID(), { isViewOnce: true }), 0);
    const worker = aWorker(open());
    const run = await worker.claimRun(once.laneKey, 600_000);
    expect(await tidy('view-once')).toBe(0);
    await worker.answer(run, 'done');
    expect(await tidy('view-once')).toBe(1);
    expect((await kept()).toSorted()).toEqual([other.name, fetchedNow].toSorted());
    const history = await open().read(readHistory, { sessionId: run.sessionId });
    expect(JSON.stringify(history)).not.toContain(once.name);
  });

  it('removes old files that nothing needs any more, from any number of processes', async () => {
    const { receive, take, answer, put, tidy, kept } = await aFolder();
    const old = await answer(31);
    const young = await answer(29);
    const [waiting, taken, parked, toBeSent] = [
      await receive(31),
      await take(31),
      await answer(31),
      await answer(31),
    ];
    await sql(`update runs set state = 'parked' where id = '${parked.run.runId}'`);
    const { laneKey, epoch, runId } = taken.run;
    const media = { kind: 'media', path: toBeSent.path, mimeType: 'application/pdf', name: 'a.pdf' } as const;
    const route = routeFor(taken.run);
    await open().write(storeToolParts, { laneKey, epoch, runId, key: unique('p'), route, contents: [media] });
    const others = await Promise.all([
      put(newMediaName(crypto.randomUUID()), 0.5),
      put(`${newMediaName(old.id)}.part`, 0.5),
      put('notes.txt', 400),
    ]);
    await Promise.all([put(newMediaName(crypto.randomUUID()), 2), put(`${newMediaName(old.id)}.part`, 2)]);

    await Promise.all([tidy(), tidy()]);
    const names = [young, waiting, taken, parked, toBeSent].map(({ name }) => name);
    expect((await kept()).toSorted()).toEqual([...names, ...others].toSorted());
    expect(await tidy()).toBe(0);

    const history = await open().read(readHistory, { sessionId: old.run.sessionId });
    expect(textOf(history[0]?.parts ?? [])).toContain('[attachment a.pdf is missing: it’s no longer kept]');
    expect(JSON.stringify(history)).not.toContain(old.name);
    const [shown] = await open().read(readTimeline, { laneKey: old.laneKey, limit: 1_000 });
    expect(shown?.files).toEqual(['a.pdf (it’s no longer kept)']);
    const traced = async (id: string) => {
      const why = await open().read(readWhy, { id, withExcerpts: false });
      return why.kind === 'account' ? renderTrace(why.account) : '';
    };
    expect(await traced(old.id)).toContain('a file that came with it is missing: it’s no longer kept');
    expect(await traced(young.id)).toContain('a file came with it (application/pdf, 5 bytes)');
  });

  it('removes old copies of sent files only once they are sent', async () => {
    const { mediaDir, take, put, tidy, kept } = await aFolder();
    const { run } = await take(29);
    const { laneKey, epoch, runId } = run;
    const post = async (days: number) => {
      const path = await put(newOutgoingName(), days);
      const contents = [{ kind: 'media', path, mimeType: 'text/plain', name: 'a.txt' }] as const;
      await open().write(storeToolParts, {
        laneKey,
        epoch,
        runId,
        key: unique('p'),
        route: routeFor(run),
        contents,
      });
      return path;
    };
    const [sent, waiting] = [await post(31), await post(31)];
    const { deliver } = aCourier(open(), conversationKeyOf(routeFor(run)));
    await deliver();
    const young = await put(newOutgoingName(), 29);
    await put(`${newOutgoingName()}.part`, 2);
    expect(await tidy()).toBe(2);
    expect(await kept()).toEqual(expect.arrayContaining([waiting, young]));
    expect(await kept()).not.toContain(sent);
    const redact = (text: string) => text;
    const shown = await readItems({ store: open(), mediaDir, redact }, { laneKey, limit: 10 });
    const sizes = shown.flatMap(({ file }) => (file ? [[file.stored, file.sizeBytes]] : []));
    expect(sizes).toEqual([
      [sent, undefined],
      [waiting, 5],
    ]);
    await deliver();
    expect(await tidy()).toBe(1);
  });

  it('removes a file later if a crash followed its mark, and never through a link', async () => {
    const { dataDir, mediaDir, answer, tidy, kept } = await aFolder();
    const { id, name } = await answer(31);
    const outside = join(dataDir, 'outside');
    await writeFile(outside, 'mine');
    const link = newMediaName(id);
    await symlink(outside, join(mediaDir, link));
    await utimes(outside, 1, 1);
    const files = [{ inboxId: id, name }];
    expect(await open().write(expireMedia, { files })).toEqual([name]);
    expect(await open().write(expireMedia, { files })).toEqual([]);
    expect(await tidy()).toBe(1);
    expect(await kept()).toEqual([link]);
    expect(await readdir(dataDir)).toContain('outside');
  });
});

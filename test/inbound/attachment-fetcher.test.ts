/** Fetching the files of accepted messages: how many at a time, and for how long. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { cappedDownload, unavailable } from '#channel-kit/capped-download.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { AttachmentRef, StoredAttachment } from '#contracts/attachment.ts';
import type { MediaAbility } from '#contracts/channel-abilities.ts';
import { noProbe } from '#contracts/probe.ts';
import { createFetcher, type Fetcher, type FetcherDeps } from '../../src/inbound/attachment-fetcher.ts';
import type { FileReader } from '../../src/media/file-reader.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aMessage, aWorker, unique } from '../store/builders.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { openOwnStore } from '../support/own-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';
import { createSteppedClock } from '../support/stepped-clock.ts';

const dataDir = sharedFolder();
const store = openOwnStore(dataDir);

const readsNothing: FileReader = {
  begin: async (file) => file,
  finish: async (file) => file,
  waitMs: () => 0,
};

function aFetcher(fetch: MediaAbility['fetch'], over: Partial<FetcherDeps> = {}): Fetcher {
  const fetcher = createFetcher({
    ...{ store: store(), clock: systemClock, log: silentLog, probe: noProbe, texts: textsFor('en') },
    mediaDir: join(dataDir(), 'media'),
    maxBytes: 1000,
    maxBytesPerHour: 1_000_000,
    channelFor: () => ({ adapter: { media: { fetch } } }),
    start: () => undefined,
    hasSpace: () => true,
    joinMs: () => 0,
    reader: readsNothing,
    echo: 'off',
    ...over,
  });
  onTestFinished(() => fetcher.stop());
  return fetcher;
}

type FilesOfEach = {
  readonly kind?: AttachmentRef['kind'];
  readonly files?: number;
  readonly sender?: string;
  readonly sizeBytes?: number;
};

/** Accepts messages with one file each, unless more are asked for, and returns their items' ids. */
async function messagesWithFiles(
  count: number,
  { kind = 'image', files = 1, sender = unique('sender'), ...stated }: FilesOfEach = {},
): Promise<readonly string[]> {
  const conversation = unique('c');
  const accepted = Array.from({ length: count }, () => {
    const proposal = aMessage({ conversation, text: 'Look', sender });
    if (proposal.decision.kind !== 'accept') throw new Error('unreachable');
    const { item } = proposal.decision;
    const one: AttachmentRef = { ref: item.id, kind, name: 'a.png', ...stated };
    const attachments = Array.from({ length: files }, () => one);
    const withFile = { ...item, content: { ...item.content, attachments } };
    return { ...proposal, decision: { kind: 'accept', item: withFile } } as const;
  });
  await aWorker(store()).accept(...accepted);
  return accepted.map(({ decision }) => decision.item.id);
}

const storedOf: StoreQuery<{ readonly id: string }, readonly StoredAttachment[]> = {
  query: 'storedOf',
  run: async (tx, { id }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .select('content')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return json.content(row.content).stored ?? [];
  },
};

describe('attachments', () => {
  it('fetches for eight messages at once, each once, and not while the disk is full', async () => {
    const ids = await messagesWithFiles(12);
    const gate = Promise.withResolvers<void>();
    const asked: string[] = [];
    const inHand = { now: 0, most: 0 };
    let hasSpace = false;
    const fetch: MediaAbility['fetch'] = async function* ({ ref }) {
      asked.push(ref);
      inHand.now += 1;
      inHand.most = Math.max(inHand.most, inHand.now);
      await gate.promise;
      yield Buffer.from('x');
      inHand.now -= 1;
    };
    const fetcher = aFetcher(fetch, { hasSpace: () => hasSpace });
    for (const id of ids) fetcher.fetch(id);
    hasSpace = true;
    for (const id of ids) fetcher.fetch(id);
    await vi.waitFor(() => expect(asked).toHaveLength(8), { timeout: patienceMs });
    gate.resolve();
    await vi.waitFor(() => expect(asked).toHaveLength(12), { timeout: patienceMs });
    expect(asked.toSorted()).toEqual(ids.toSorted());
    expect(inHand.most).toBe(8);
  });

  it.each([
    ['away for a while and then delivers', 5, 'stored', [2000, 2000, 2000, 2000, 2000]],
    ['away for so long that the file is given up', 99, 'missing', Array.from({ length: 7 }, () => 2000)],
  ])('handles a network that is %s', async (_, failures, kind, waits) => {
    const [id = ''] = await messagesWithFiles(1);
    const clock = createSteppedClock();
    let [tries, isDone] = [0, false];
    const fetch: MediaAbility['fetch'] = async function* () {
      tries += 1;
      if (tries <= failures) throw unavailable('no answer', { afterMs: 2000 });
      yield Buffer.from('whole');
    };
    const start = () => {
      isDone = true;
    };
    aFetcher(fetch, { clock, start }).fetch(id);
    await clock.until(() => isDone);
    const [file] = await store().read(storedOf, { id });
    expect(file).toMatchObject({ kind });
    if (file?.kind === 'stored')
      expect(await readFile(join(dataDir(), 'media', file.path), 'utf8')).toBe('whole');
    expect(clock.waits).toEqual(waits);
  });

  it('fetches other files while voice messages wait for a program that writes them down', async () => {
    const gate = Promise.withResolvers<void>();
    let waiting = 0;
    const reader: FileReader = {
      begin: async (file) => (file.sentAs === 'voice' ? { ...file, reading: { kind: 'pending' } } : file),
      finish: async ({ reading: _, ...file }) => {
        waiting += 1;
        await gate.promise;
        return file;
      },
      waitMs: () => 60_000,
    };
    const fetched: string[] = [];
    const fetch: MediaAbility['fetch'] = async function* ({ ref }) {
      fetched.push(ref);
      yield Buffer.from('x');
    };
    const fetcher = aFetcher(fetch, { reader });
    // Before the fetcher stops, which waits for what it reads.
    onTestFinished(() => gate.resolve());
    const voices = await messagesWithFiles(20, { kind: 'voice' });
    for (const id of voices) fetcher.fetch(id);
    await vi.waitFor(() => expect(waiting).toBeGreaterThanOrEqual(8), { timeout: patienceMs });
    const [photo = ''] = await messagesWithFiles(1);
    fetcher.fetch(photo);
    await vi.waitFor(() => expect(fetched).toContain(photo), { timeout: patienceMs });
    expect(waiting).toBe(8);
    gate.resolve();
    await vi.waitFor(() => expect(waiting).toBe(20), { timeout: patienceMs });
    expect(fetched.toSorted()).toEqual([...voices, photo].toSorted());
  });

  it('frees the memory of chunks as they arrive, whichever file they belong to', async () => {
    const ids = await messagesWithFiles(3);
    const collect = vi.fn();
    vi.stubGlobal('gc', collect);
    onTestFinished(() => void vi.unstubAllGlobals());
    const fetch: MediaAbility['fetch'] = async function* () {
      for (let n = 0; n < 30; n += 1) yield Buffer.alloc(100_000);
    };
    const done = Promise.withResolvers<void>();
    let stored = 0;
    const start = () => {
      stored += 1;
      if (stored === ids.length) done.resolve();
    };
    const fetcher = aFetcher(fetch, { start, maxBytes: 3_000_000, maxBytesPerHour: 100_000_000 });
    for (const id of ids) fetcher.fetch(id);
    await done.promise;
    // 9 MB have arrived in all.
    expect(collect).toHaveBeenCalledTimes(2);
  });

  it('asks three times for a file that the network refuses', async () => {
    const [id = ''] = await messagesWithFiles(1);
    const clock = createSteppedClock();
    let isDone = false;
    const fetch: MediaAbility['fetch'] = async function* () {
      yield await Promise.reject(unavailable('it was removed'));
    };
    const start = () => {
      isDone = true;
    };
    aFetcher(fetch, { clock, start }).fetch(id);
    await clock.until(() => isDone);
    expect(await store().read(storedOf, { id })).toMatchObject([{ kind: 'missing', name: 'a.png' }]);
    expect(clock.waits).toEqual([500, 2000]);
  });

  it('fetches ten files of a message and names the others as missing', async () => {
    const [id = ''] = await messagesWithFiles(1, { files: 12 });
    let [asked, isDone] = [0, false];
    const fetch: MediaAbility['fetch'] = async function* () {
      asked += 1;
      yield Buffer.from('x');
    };
    const start = () => {
      isDone = true;
    };
    aFetcher(fetch, { start }).fetch(id);
    await vi.waitFor(() => expect(isDone).toBe(true), { timeout: patienceMs });
    const files = await store().read(storedOf, { id });
    expect(files.map(({ kind }) => kind)).toEqual([
      ...Array.from({ length: 10 }, () => 'stored'),
      ...['missing', 'missing'],
    ]);
    expect(asked).toBe(10);
  });

  it.each([
    ['stated', 600],
    ['unknown', undefined],
  ])('limits the bytes fetched for one sender within an hour if their size is %s', async (_, sizeBytes) => {
    const sender = unique('sender');
    const stated = sizeBytes === undefined ? {} : { sizeBytes };
    const [mine, others] = [
      await messagesWithFiles(3, { sender, ...stated }),
      await messagesWithFiles(1, stated),
    ];
    const clock = createSteppedClock();
    let done = 0;
    const fetch: MediaAbility['fetch'] = async function* () {
      yield Buffer.alloc(600);
    };
    const start = () => void done++;
    const fetcher = aFetcher(fetch, { clock, start, maxBytesPerHour: 1300 });
    const after = async (id: string) => {
      const before = done;
      fetcher.fetch(id);
      await vi.waitFor(() => expect(done).toBe(before + 1), { timeout: patienceMs });
      return (await store().read(storedOf, { id }))[0]?.kind;
    };
    const kinds = [await after(mine[0] ?? ''), await after(mine[1] ?? '')];
    // A file of unknown size is only counted once it has been fetched.
    const third = sizeBytes === undefined ? 'stored' : 'missing';
    expect([...kinds, await after(mine[2] ?? '')]).toEqual(['stored', 'stored', third]);
    const [late = '', later = ''] = await messagesWithFiles(2, { sender, ...stated });
    expect([await after(late), await after(others[0] ?? '')]).toEqual(['missing', 'stored']);
    await clock.advance(3_600_000);
    expect(await after(later)).toBe('stored');
  });

  it.each([
    ['that stops arriving', { silenceMs: 20 }, () => new Promise<never>(() => undefined)],
    ['that arrives byte by byte without an end', { limitMs: 100 }, () => setTimeout(1)],
  ])('gives up a file %s', async (_, limits, pause) => {
    const body = async function* (signal: AbortSignal) {
      const ended = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
      for (;;) {
        yield Buffer.from('a');
        await Promise.race([pause(), ended]);
      }
    };
    const open = async (signal: AbortSignal) => ({ statedBytes: undefined, body: body(signal) });
    const source = { open, networkReason: () => 'given up', ...limits };
    const wanted = {
      ref: { ref: 'f', kind: 'file' },
      maxBytes: 1_000_000,
      signal: new AbortController().signal,
    } as const;
    const drain = async () => {
      for await (const _ of cappedDownload(source, wanted));
    };
    await expect(drain()).rejects.toMatchObject({ code: 'media_unavailable', retry: { kind: 'later' } });
  });
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { HostedChannel } from '../../src/contracts/channel.ts';
import type { Outbound, SendResult } from '../../src/contracts/outbound.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createDeliverer } from '../../src/outbox/deliverer.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { aConversation } from '../store/a-conversation.ts';
import { holder, routeFor } from '../store/builders.ts';
import { aFolder } from '../support/own-folder.ts';
import { aStore } from '../support/own-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

const sizeBytes = 1000;

const readAll: StoreQuery<
  null,
  Readonly<Record<string, { state: string; attempts: number; problem: string | null }>>
> = {
  query: 'readAll',
  run: async (tx) => {
    const parts = tx.db.selectFrom('outbox').select(['conversationKey', 'state', 'attempts', 'problem']);
    const rows = await parts.execute();
    return Object.fromEntries(rows.map(({ conversationKey, ...row }) => [conversationKey, row]));
  },
};

/** Stores a file for each of so many conversations; returns them, and what delivers them under a budget of two files. */
async function aRush(count: number, send: (index: number) => Promise<SendResult>) {
  const { store } = await aStore();
  const mediaDir = aFolder();
  await writeFile(join(mediaDir, 'a'), Buffer.alloc(sizeBytes));
  const keys: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const { begin, answer, conversationKey } = aConversation(store);
    const run = await begin();
    const content = { kind: 'media', path: 'a', name: 'a', mimeType: 'image/png' } as const;
    await answer(run, '', { parts: [{ route: routeFor(run), content, purpose: 'reply' }] });
    keys.push(conversationKey);
  }
  let [now, most] = [0, 0];
  const begun = vi.fn();
  const adapter = {
    send: async ({ route }: Outbound) => {
      now += 1;
      most = Math.max(most, now);
      try {
        return await send(keys.findIndex((key) => key.endsWith(route.conversation)));
      } finally {
        now -= 1;
      }
    },
  };
  const deliverer = createDeliverer({
    ...{ store, holder, clock: systemClock, log: silentLog, mediaDir, probe: noProbe },
    journal: { begin: begun, end: () => undefined },
    maxUploadsMb: (2 * sizeBytes) / 1_000_000,
    // The deliverer reads nothing else of a channel.
    adapterFor: () =>
      ({ definition: { capabilities: { repeatSafeMs: 0 } }, adapter }) as unknown as HostedChannel,
    settings: { retries: 1, minBackoffMs: 1, maxBackoffMs: 1, sendTimeoutMs: 2_000, resendUnknown: false },
    onSettled: () => undefined,
  });
  onTestFinished(() => deliverer.stop());
  for (const key of keys) deliverer.deliver(key);
  const states = async () => {
    const all = await store.read(readAll, null);
    return keys.map((key) => all[key]);
  };
  return { states, begun, most: () => most };
}

it('uploads no more at once than the budget allows, over all conversations, and in the end all', async () => {
  const { states, most } = await aRush(12, async () => {
    await sleep(5);
    return { kind: 'sent', receipts: [] };
  });
  const ended = async () => (await states()).filter((part) => part?.state === 'sent');
  await vi.waitFor(async () => expect(await ended()).toHaveLength(12), patienceMs);
  expect(most()).toBe(2);
});

it('gives back the room of an upload that fails, however it fails', async () => {
  const { states } = await aRush(9, async (index) => {
    if (index % 3 === 0) throw new Error('a fault of the adapter');
    return index % 3 === 1
      ? { kind: 'failed', failure: { kind: 'rejected' }, reason: 'no' }
      : { kind: 'sent', receipts: [] };
  });
  const names = async () => (await states()).map((part) => part?.state);
  const expected = ['unknown', 'failed', 'sent', 'unknown', 'failed', 'sent', 'unknown', 'failed', 'sent'];
  await vi.waitFor(async () => expect(await names()).toEqual(expected), patienceMs);
});

it('lets a file wait without a call, a mark in the journal or a counted attempt', async () => {
  const uploading = Promise.withResolvers<SendResult>();
  const { states, begun } = await aRush(3, () => uploading.promise);
  onTestFinished(() => uploading.resolve({ kind: 'sent', receipts: [] }));
  // Half of the longest call.
  const waits = { state: 'pending', attempts: 0, problem: 'other files are sent first' };
  await vi.waitFor(async () => expect(await states()).toContainEqual(waits), patienceMs);
  expect(begun).toHaveBeenCalledTimes(2);
});

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { HostedChannel } from '../../src/contracts/channel.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import type { Outbound } from '../../src/contracts/outbound.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createDeliverer } from '../../src/outbox/deliverer.ts';
import type { Store } from '../../src/store/base/command.ts';
import { recordDelivery } from '../../src/store/delivery/claim-delivery.ts';
import { aLane, aMessage, aWorker, holder, unique } from '../store/builders.ts';
import { openStore } from '../support/open-store.ts';
import { silentLog } from '../support/silent-log.ts';

it('keeps what the platform said while the store is away for a moment', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-outbox-'));
  const store = await openStore({ kind: 'sqlite', dataDir });
  onTestFinished(async () => {
    await store.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });
  let failures = 0;
  const shaky: Store = {
    ...store,
    write: (command, input) => {
      if (command.name !== recordDelivery.name || failures > 0) return store.write(command, input);
      failures += 1;
      return Promise.reject(new ParleyError('store_unavailable', 'away'));
    },
  };
  const conversation = unique('c');
  const worker = aWorker(store);
  await worker.accept(aMessage({ conversation, text: 'hi' }));
  await worker.answer(await worker.claimRun(aLane(conversation).key), 'hello');

  const sent: Outbound[] = [];
  const deliverer = createDeliverer({
    store: shaky,
    holder,
    clock: systemClock,
    log: silentLog,
    journal: { begin: () => undefined, end: () => undefined },
    probe: noProbe,
    // The deliverer reads nothing else of a channel.
    adapterFor: () =>
      ({
        definition: { capabilities: { repeatSafeMs: 0 } },
        adapter: {
          send: async (part: Outbound) => {
            sent.push(part);
            return { kind: 'sent', receipts: [] };
          },
        },
      }) as unknown as HostedChannel,
    settings: { retries: 3, minBackoffMs: 1, maxBackoffMs: 1, sendTimeoutMs: 30_000, resendUnknown: false },
    onSettled: () => undefined,
  });
  deliverer.deliver(`test/bot/${conversation}`);
  await vi.waitFor(async () => expect(await stateOf(store, conversation)).toEqual(['sent']));
  await deliverer.stop();
  expect({ failures, sent: sent.length }).toEqual({ failures: 1, sent: 1 });
});

function stateOf(store: Store, conversation: string) {
  return store.read(
    {
      query: 'stateOf',
      run: async (tx, key: string) => {
        const rows = await tx.db
          .selectFrom('outbox')
          .select('state')
          .where('conversationKey', '=', key)
          .execute();
        return rows.map(({ state }) => state);
      },
    },
    `test/bot/${conversation}`,
  );
}

import { expect, it } from 'vitest';
import { revokeOnConsole } from '../../src/store/access/operate-access.ts';
import type { Store } from '../../src/store/base/command.ts';
import { atConsole } from '../store/access-builders.ts';
import { aStore } from '../support/own-store.ts';
import { cutPower } from '../support/power-cut.ts';
import { envelopeOf } from '../threats/access-cells.ts';
import { anAccessFixture } from '../threats/access-fixture.ts';

const network = 'telegram';
const policies = { dmPolicy: 'pairing', groupPolicy: 'allowlist' } as const;

/** Returns a store in which something happens after each of its first `times` reads. */
function interrupt(store: Store, times: number, happen: () => Promise<unknown>): Store {
  let left = times;
  return {
    ...store,
    read: async (query, input) => {
      const answer = await store.read(query, input);
      if (left-- > 0) await happen();
      return answer;
    },
  };
}

it('decides a message again if its sender is revoked after intake has decided', async () => {
  const { store, dataDir } = await aStore();
  const racing = interrupt(store, 1, () =>
    store.write(revokeOnConsole, { ref: 'telegram:4', by: atConsole }),
  );
  const door = await anAccessFixture(racing, { dataDir, network, policies });
  const cell = { event: 'text', sender: 'approved', chat: 'dm' } as const;
  const acceptances = await door.accept([envelopeOf(cell, { network, bot: door.bot, mark: 'late' })]);
  expect(acceptances).toEqual([{ kind: 'refused', reason: 'dm-not-paired' }]);
  expect(door.rows(`select "id" from "inbox" where "account" = @account`)).toEqual([]);
});

it('returns events undecided if access changes faster than intake can decide', async () => {
  const { store, dataDir } = await aStore();
  let isIn = true;
  const flip = async () => {
    isIn = !isIn;
    if (!isIn) await store.write(revokeOnConsole, { ref: 'telegram:4', by: atConsole });
    else
      door.change(`insert into "people" ("account", "peerId", "ref", "name", "role", "approvedAt", "approvedBy")
        values ('telegram/${door.bot}', '4', 'telegram:4', 'Someone', 'user', 1, 'console')`);
  };
  const door = await anAccessFixture(interrupt(store, 5, flip), { dataDir, network, policies });
  const cell = { event: 'text', sender: 'approved', chat: 'dm' } as const;
  const envelope = envelopeOf(cell, { network, bot: door.bot, mark: 'hasty' });
  await expect(door.accept([envelope])).rejects.toMatchObject({
    code: 'store_unavailable',
    retry: { kind: 'later' },
  });
  expect(door.rows(`select "eventKey" from "ledger" where "account" = @account`)).toEqual([]);
  // Its redelivery is decided by the access at that time.
  expect(await door.accept([envelope])).toEqual([{ kind: 'refused', reason: 'dm-not-paired' }]);
});

it('keeps request, notice and ledger entry together across a power cut', async () => {
  const { store, dataDir } = await aStore();
  const cell = { event: 'text', sender: 'stranger', chat: 'dm' } as const;
  for (const isCommitted of [false, true]) {
    // The first write is the account's lease.
    const dying = cutPower(store, { write: 2, isCommitted });
    const door = await anAccessFixture(dying, { dataDir, network, policies });
    const envelope = envelopeOf(cell, { network, bot: door.bot, mark: 'cut' });
    const kept = () => [
      door.rows(`select "eventKey" from "ledger" where "account" = @account`).length,
      door.rows(`select "peerId" from "pairings" where "account" = @account`).length,
      door.rows(`select "key" from "outbox" where "conversationKey" like @account || '/%'`).length,
    ];
    await expect(door.accept([envelope])).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(kept()).toEqual(isCommitted ? [1, 1, 1] : [0, 0, 0]);
    const [again] = await door.reopened(store).accept([envelope]);
    const reason = 'dm-not-paired';
    expect(again).toEqual(
      isCommitted ? { kind: 'duplicate', of: { outcome: 'refused', reason } } : { kind: 'refused', reason },
    );
    expect(kept()).toEqual([1, 1, 1]);
  }
});

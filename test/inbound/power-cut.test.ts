import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import type { InboundEnvelope } from '../../src/contracts/envelope.ts';
import {
  accountId,
  channelId,
  conversationId,
  eventKey,
  messageId,
  peerId,
} from '../../src/contracts/ids.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createInboundPolicy } from '../../src/inbound/inbound-policy.ts';
import { createIntake } from '../../src/inbound/intake.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { openStore } from '../support/open-store.ts';
import { type CutStore, cutPower, everyCut } from '../support/power-cut.ts';
import { silentLog } from '../support/silent-log.ts';
import { commandDeps } from './support/command-deps.ts';

const holder = 'boot-1';
const texts = ['one', '/status', 'two'];

describe('a power cut while a batch is accepted', () => {
  let dataDir = '';
  let store: Store | undefined;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-intake-'));
    store = await openStore({ kind: 'sqlite', dataDir });
  });
  afterAll(async () => {
    await store?.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });

  it('never leaves the cursor ahead of the rows, and stores each redelivered event once', async () => {
    if (!store) throw new Error('the store is not open');
    const cuts = everyCut(5);
    for (const [index, cut] of cuts.entries()) {
      const bot = `bot-${index}`;
      const account = `net/${bot}`;
      const lease = await store.write(claimAccount, { account, holder, leaseMs: 60_000 });
      if (lease.kind !== 'held') throw new Error('the account is busy');
      const batch = { cursor: '3', events: texts.map((text, n) => anEnvelope(bot, { text, n })) };
      const receiving = { account, epoch: lease.epoch, holder, botName: () => 'bot' };

      const dying = cutPower(store, cut);
      const outcome = await intakeOver(dying, dataDir, receiving)
        .accept(batch)
        .then(
          () => 'acknowledged',
          () => 'not acknowledged',
        );
      const left = await store.read(whatIsLeft, { account });
      const isComplete = left.events === texts.length;
      const isAhead = left.cursor !== null && !isComplete;
      expect({ cut, isAhead }).toEqual({ cut, isAhead: false });
      if (outcome === 'acknowledged') expect(isComplete).toBe(true);

      await intakeOver(store, dataDir, receiving).accept(batch);
      expect(await store.read(whatIsLeft, { account })).toEqual({ cursor: '3', events: 3, messages: 2 });
    }
  });
});

function anEnvelope(bot: string, { text, n }: { text: string; n: number }): InboundEnvelope {
  return {
    eventKey: eventKey(`message:${n}`),
    sentAt: 1,
    route: { channel: channelId('net'), account: accountId(bot), conversation: conversationId('ann') },
    chat: { kind: 'dm' },
    sender: { id: peerId('ann'), name: 'Ann', isBot: false, isSelf: false },
    event: {
      kind: 'message',
      messageId: messageId(String(n)),
      text,
      provenance: 'typed',
      attachments: [],
      mentionsBot: false,
      repliesToBot: false,
    },
  };
}

type Receiving = Parameters<typeof createIntake>[1];

function intakeOver(store: Store | CutStore, dataDir: string, receiving: Receiving) {
  const config = loadConfig(
    { values: { PARLEY_DATA_DIR: dataDir, PARLEY_DM_POLICY: 'open' }, unknown: [] },
    dataDir,
  );
  const policy = createInboundPolicy(config, textsFor('en'));
  const commands = commandDeps;
  return createIntake(
    {
      store,
      policy,
      commands,
      clock: systemClock,
      log: silentLog,
      probe: noProbe,
      start: () => undefined,
      reserve: () => undefined,
      hasSpace: () => true,
    },
    receiving,
  );
}

type Left = { readonly cursor: string | null; readonly events: number; readonly messages: number };

const whatIsLeft: StoreQuery<{ readonly account: string }, Left> = {
  query: 'whatIsLeft',
  run: async (tx, { account }) => {
    const row = await tx.db
      .selectFrom('accounts')
      .select('cursor')
      .where('key', '=', account)
      .executeTakeFirst();
    const events = await tx.db
      .selectFrom('ledger')
      .select('eventKey')
      .where('account', '=', account)
      .execute();
    const messages = await tx.db.selectFrom('inbox').select('id').where('account', '=', account).execute();
    return { cursor: row?.cursor ?? null, events: events.length, messages: messages.length };
  },
};

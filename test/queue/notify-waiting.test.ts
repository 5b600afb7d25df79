import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { expect, it } from 'vitest';
import type { Capabilities } from '../../src/contracts/capabilities.ts';
import type { OutboundContent } from '../../src/contracts/outbound.ts';
import { createWaitingNotices, type WaitingNoticeSettings } from '../../src/queue/notify-waiting.ts';
import type { Store } from '../../src/store/base/command.ts';
import { noEffects } from '../../src/store/base/effects.ts';
import {
  readUnnotified,
  storeWaitingNotices,
  type UnnotifiedItem,
} from '../../src/store/items/waiting-notices.ts';
import { aLane, aMessage, aRoute, aWorker } from '../store/builders.ts';
import { aStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

const settings: WaitingNoticeSettings = { kind: 'reaction', afterMs: 2000, emoji: '👀', channels: {} };
const aChannel = { canReact: true, isSessionBound: false } as Capabilities;

type Case = {
  readonly settings?: Partial<WaitingNoticeSettings>;
  readonly channel?: Partial<Capabilities> | undefined;
  readonly item?: Partial<UnnotifiedItem>;
  readonly hasWorker?: boolean;
};

/** Returns what the sender of one waiting message is sent. */
async function told({
  settings: changed,
  channel = {},
  item,
  hasWorker = true,
}: Case): Promise<OutboundContent | undefined> {
  const untold = { inboxId: 'i', laneKey: 'l', chatKind: 'dm', route: aRoute('c'), messageId: 'm', ...item };
  let said: OutboundContent | undefined;
  const store = {
    read: async (query: unknown) => (query === readUnnotified ? [untold] : []),
    write: async (command: unknown, { notices }: { notices: readonly { content?: OutboundContent }[] }) => {
      if (command === storeWaitingNotices) said = notices[0]?.content;
      return noEffects();
    },
  } as unknown as Store;
  const capabilitiesFor = () => ({ ...aChannel, ...channel });
  const texts = { line: 'Got it.', unworkedLine: 'No worker is running.' };
  const options = {
    ...{ store, log: silentLog, settings: { ...settings, ...changed }, ...texts },
    hasWorker: async () => hasWorker,
    start: () => undefined,
  };
  await createWaitingNotices({ ...options, capabilitiesFor }).look();
  return said;
}

it.each<readonly [string, Case, 'reaction' | 'text' | undefined]>([
  ['a reaction if the network has reactions', {}, 'reaction'],
  ['a line if the network has none', { channel: { canReact: false } }, 'text'],
  [
    'nothing in a group without reactions',
    { channel: { canReact: false }, item: { chatKind: 'group' } },
    undefined,
  ],
  ['a line if configured', { settings: { kind: 'line' } }, 'text'],
  [
    'a reaction in a group even if a line is configured',
    { settings: { kind: 'line' }, item: { chatKind: 'group' } },
    'reaction',
  ],
  ['nothing if configured', { settings: { kind: 'off' } }, undefined],
  ['nothing on a channel that is switched off', { settings: { channels: { test: 'off' } } }, undefined],
  ['a line on a channel configured so', { settings: { kind: 'off', channels: { test: 'line' } } }, 'text'],
  ['nothing if the page shows waiting messages', { channel: { isSessionBound: true } }, undefined],
  ['nothing for an item without a message of its own', { item: { messageId: undefined } }, undefined],
])('sends a waiting sender %s', async (_, given, kind) => {
  expect((await told(given))?.kind).toBe(kind);
});

it('says in words that no worker runs, even on a page and in a group', async () => {
  const unworked = { kind: 'text', text: { text: 'No worker is running.', spans: [] } };
  expect(await told({ hasWorker: false })).toEqual(unworked);
  expect(await told({ hasWorker: false, channel: { isSessionBound: true } })).toEqual(unworked);
  expect(await told({ hasWorker: false, item: { chatKind: 'group' } })).toEqual(unworked);
  expect(await told({ hasWorker: false, item: { messageId: undefined } })).toBeUndefined();
});

it('notifies all other senders when the row of one message is damaged, and skips that one later', async () => {
  const { store, dataDir } = await aStore();
  const worker = aWorker(store);
  for (const name of ['before', 'damaged', 'after'])
    await worker.accept(aMessage({ conversation: name, text: name }));
  const db = new BetterSqlite3(join(dataDir, 'parley.db'));
  db.exec(`update inbox set "createdAt" = "createdAt" - 60000`);
  db.exec(`update inbox set route = '{' where "laneKey" = '${aLane('damaged').key}'`);
  db.close();
  const told: string[] = [];
  const notices = createWaitingNotices({
    ...{ store, log: silentLog, settings, line: 'Got it.', unworkedLine: 'No worker is running.' },
    // Each sender gets a notice that is stored, so the damaged row is also met when it is written.
    hasWorker: async () => false,
    capabilitiesFor: () => undefined,
    start: ({ deliveries }) => void told.push(...deliveries),
  });
  await notices.look();
  expect(told.toSorted()).toEqual(['test/bot/after', 'test/bot/before']);
  expect(await store.read(readUnnotified, { afterMs: 0 })).toEqual([]);
});

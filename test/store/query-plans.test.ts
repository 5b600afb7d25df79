import { afterAll, expect, it } from 'vitest';
import { readOwnerRoute } from '../../src/store/alerts/owner-route.ts';
import { readUndelivered } from '../../src/store/delivery/operator-actions.ts';
import { storeFetched } from '../../src/store/intake/media.ts';
import { cancelItem, cancelItems, editItem, promoteItem } from '../../src/store/items/change-item.ts';
import { readUnnotified } from '../../src/store/items/waiting-notices.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { commitToolTurn } from '../../src/store/lanes/commit-turn.ts';
import { recoverRun } from '../../src/store/lanes/recover-run.ts';
import { needsBoundary } from '../../src/store/lanes/steer.ts';
import { closeBundles, readSweep } from '../../src/store/lanes/sweep.ts';
import { voidProcesses } from '../../src/store/processes/process-records.ts';
import { readArrivalFacts } from '../../src/store/reads/arrival-facts.ts';
import { readIsSeen, readMessageIds } from '../../src/store/reads/own-messages.ts';
import { readActivity } from '../../src/store/reads/read-activity.ts';
import { readLiveLanes } from '../../src/store/reads/read-live-lanes.ts';
import { readOpenCounts } from '../../src/store/reads/read-open-counts.ts';
import { findSession, readLaneStatus } from '../../src/store/reads/read-sessions.ts';
import { readHistory } from '../../src/store/reads/read-transcript.ts';
import { readUsage } from '../../src/store/reads/read-usage.ts';
import {
  findQueuedItem,
  readQueuedItems,
  readWaitingItems,
} from '../../src/store/reads/read-waiting-items.ts';
import { readWhy } from '../../src/store/reads/why/read-why.ts';
import { openSignIn } from '../../src/store/sign-ins/sign-ins.ts';
import { openMemoryStore } from '../support/memory-store.ts';
import { aConversation, aCourier } from './a-conversation.ts';
import { account, aLane, aMessage, aRoute, aWorker } from './builders.ts';

const asked = new Set<string>();
const { store, sqlite } = await openMemoryStore((connection) => (text) => {
  asked.add(text);
  return connection.prepare(text);
});

afterAll(() => sqlite.close());

it('reads a history from its cut on and nothing before it', async () => {
  await store.read(readHistory, { sessionId: 'any' });
  const plans = [...asked].filter((sql) => sql.includes('"keptFrom"')).flatMap(planOf);
  expect(plans).toContainEqual(expect.stringMatching(/^SEARCH transcript .*position>\?/));
  expect(plans.filter((detail) => /SCAN|TEMP B-TREE/.test(detail))).toEqual([]);
});

it('reads open rows without reading ended ones', async () => {
  await sayAndAnswer('anna');
  await store.read(readSweep, {});
  await store.read(readUnnotified, { afterMs: 2_000 });
  expect(asked.size).toBeGreaterThan(30);

  const plans = [...asked].flatMap((sql) =>
    sqlite
      .prepare(`explain query plan ${sql}`)
      .all(Array.from(sql.match(/\?/g) ?? [], () => null))
      .map((row) => ({ sql, detail: (row as { readonly detail: string }).detail })),
  );
  // A query may scan its own intermediate results, but never a table or an index.
  const isWhole = /^SCAN (?!json_each |due$|found$)/;
  expect(plans.filter(({ detail }) => isWhole.test(detail))).toEqual([]);
  const openRows = plans.filter(({ sql }) => /^select[^;]*"state" in \('(?:held|pending)'/.test(sql));
  const ofOpenRows = openRows.filter(({ detail }) => /(?:SCAN|SEARCH) (?:inbox|outbox)\b/.test(detail));
  expect(ofOpenRows.length).toBeGreaterThan(5);
  for (const { detail } of ofOpenRows)
    expect(detail).toMatch(/INDEX (?:inbox(?:Open|Due|Fetching)|outboxOpen)/);
});

it("hides values from the planner, so that SQLite doesn't prepare a statement for each value", async () => {
  await sayAndAnswer('bela');
  const shown = [...asked].filter((sql) => /[^+]\?/.test(sql));
  expect(shown).toEqual([]);
});

it('reads unshown context without reading the shown context', async () => {
  const worker = aWorker(store);
  const overheard = { conversation: 'fred', text: 'by the way', item: { passesGate: false } };
  await worker.accept(aMessage(overheard), aMessage({ conversation: 'fred', text: 'hello' }));
  await worker.claimRun(aLane('fred').key);
  const plans = [...asked].filter((sql) => sql.includes('"shownInRun" is null')).flatMap(planOf);
  const ofContext = plans.filter((detail) => detail.includes('groupContext'));
  expect(ofContext.length).toBeGreaterThan(2);
  for (const detail of ofContext) expect(detail).toContain('INDEX groupContextUnshown');
});

it('finds out whether a message was seen without reading all overheard messages', async () => {
  const target = aRoute('fred');
  asked.clear();
  await store.read(readIsSeen, { run: { laneKey: 'any', sessionId: 'any', target }, messageId: 'any' });
  const plans = [...asked].flatMap(planOf).filter((detail) => detail.includes('groupContext'));
  expect(plans).toEqual([expect.stringContaining('INDEX groupContextMessage')]);
});

it('reads the message ids of a page without reading other messages', async () => {
  asked.clear();
  await store.read(readMessageIds, { ids: ['any', 'other'] });
  const plans = [...asked].flatMap(planOf);
  expect(plans.filter((detail) => /^SCAN (?:inbox|outbox|transcript)/.test(detail))).toEqual([]);
  expect(plans).toContainEqual(expect.stringContaining('INDEX inboxRun'));
});

it('asks once for the tasks of a conversation that has none, and by an index', async () => {
  const { laneKey } = await sayAndAnswer('tasks');
  asked.clear();
  await store.read(readActivity, { laneKey });
  const ofTasks = [...asked].filter((sql) => /from "(?:tasks|subtasks|taskMessages)"/.test(sql));
  expect(ofTasks).toHaveLength(1);
  const plans = ofTasks.flatMap(planOf).filter((detail) => detail.includes('tasks'));
  expect(plans).not.toEqual([]);
  for (const detail of plans) expect(detail).toMatch(/^SEARCH tasks USING INDEX tasks(?:Session|Open) /);
});

it('traces a message without reading the history', async () => {
  await sayAndAnswer('cora');
  const worker = aWorker(store);
  await worker.accept(aMessage({ conversation: 'cora', text: 'one more', messageId: 'more' }));
  asked.clear();
  const found = await store.read(readWhy, { id: 'test:cora/more', withExcerpts: true });
  const item = found.kind === 'account' ? found.account.items[0] : undefined;
  await worker.claimRun(aLane('cora').key);
  const ids = ['more', item?.id ?? '', 'message:more', 'nobody', 'run/call', 'ABCD2345', 'test:ann'];
  for (const id of ids) await store.read(readWhy, { id, withExcerpts: true });
  const plans = [...asked].filter((sql) => sql.startsWith('select')).flatMap(planOf);
  expect(plans.length).toBeGreaterThan(20);
  expect(plans.filter(isWholeForWhy)).toEqual([]);
});

it('shows any other record without reading the history', async () => {
  const worker = aWorker(store);
  await worker.accept(aMessage({ conversation: 'gina', text: 'hello' }));
  const run = await worker.claimRun(aLane('gina').key);
  const held = { laneKey: run.laneKey, epoch: run.epoch, runId: run.runId };
  const message = { id: 'turn', sessionId: run.sessionId, model: 'test', parts: [] };
  await store.write(commitToolTurn, {
    ...held,
    message,
    calls: [{ callId: 'call', name: 'act', input: '{}' }],
  });
  await store.write(openSignIn, {
    ...{ id: 'sign-in', secretHash: 'hash', issuer: 'issuer', browser: 'Firefox' },
    ...{ at: 1, expiresAt: 2 },
  });
  asked.clear();
  const kinds: string[] = [];
  for (const id of [run.sessionId, run.laneKey, 'test/bot/gina', account, 'test:gina', 'sign-in', 'call']) {
    const found = await store.read(readWhy, { id, withExcerpts: true });
    kinds.push(found.kind === 'record' ? found.record.kind : found.kind);
  }
  expect(kinds).toEqual(['session', 'lane', 'conversation', 'account', 'conversation', 'sign-in', 'account']);
  const plans = [...asked].filter((sql) => sql.startsWith('select')).flatMap(planOf);
  expect(plans.length).toBeGreaterThan(10);
  expect(plans.filter(isWholeForWhy)).toEqual([]);
});

/** Accounts and conversations are few compared to messages; of calls the query reads the latest, in key order. */
function isWholeForWhy(detail: string): boolean {
  return /^SCAN (?!accounts|conversations|latest$|toolCalls USING COVERING INDEX)/.test(detail);
}

it('lists undelivered parts without reading delivered ones', async () => {
  asked.clear();
  await store.read(readUndelivered, { limit: 5 });
  const plans = [...asked].flatMap(planOf).filter((detail) => detail.includes('outbox'));
  expect(plans).toHaveLength(3);
  for (const detail of plans) expect(detail).toMatch(/USING INDEX outbox(?:Open|Unknown|Failed)/);
});

it('counts open work without reading ended work', async () => {
  await sayAndAnswer('dora');
  asked.clear();
  await store.read(readOpenCounts, {});
  const plans = [...asked].flatMap(planOf);
  expect(plans.length).toBeGreaterThan(5);
  const isWhole =
    /^SCAN (?!waiting|.*USING (?:COVERING )?INDEX (?:inboxOpen|inboxDue|outboxOpen|lanesUnfinished|childrenLive|callApprovalsOpen)|CONSTANT ROW)/;
  expect(plans.filter((detail) => isWhole.test(detail))).toEqual([]);
});

it("sums up a conversation's usage without reading its calls or messages", async () => {
  const { sessionId } = await sayAndAnswer('greta');
  asked.clear();
  await store.read(readLaneStatus, { laneKey: aLane('greta').key });
  await store.read(readUsage, { sessionId });
  await store.read(findSession, { idOrKey: aLane('greta').key });
  // A session by the beginning of its id, and the newest message of a conversation: one row each.
  const ofOneRow = /substr\(id|order by "seq" desc limit/;
  const plans = [...asked].filter((sql) => !ofOneRow.test(sql)).flatMap(planOf);
  expect(plans.length).toBeGreaterThan(4);
  expect(plans.filter((detail) => /modelCalls|inboxOrder|^SCAN (?!below$)/.test(detail))).toEqual([]);
});

it('finds where an owner wrote last without reading the lanes of others', async () => {
  await sayAndAnswer('hugo');
  asked.clear();
  expect(await store.read(readOwnerRoute, { owners: ['test:ann'] })).toBeDefined();
  const plans = [...asked].flatMap(planOf);
  expect(plans).toContain('SEARCH lanes USING INDEX lanesOfOwners (ownerAt>?)');
  const isWhole = /^SCAN (?!.*USING (?:COVERING )?INDEX peopleOwners$)|TEMP B-TREE/;
  expect(plans.filter((detail) => isWhole.test(detail))).toEqual([]);
});

it('lists and changes waiting items without reading the history', async () => {
  await sayAndAnswer('dora');
  const worker = aWorker(store);
  const laneKey = aLane('dora').key;
  for (const text of ['one', 'two']) await worker.accept(aMessage({ conversation: 'dora', text }));
  asked.clear();
  const [first, second] = await store.read(readWaitingItems, { laneKey });
  const actor = { ref: 'console', people: [], mayChangeAny: true, mayPromoteOwn: true };
  const change = (number = 0) => ({ laneKey, number, actor });
  const words = { text: 'three', prompt: 'three', newId: crypto.randomUUID() };
  await store.write(promoteItem, change(second?.number));
  await store.write(editItem, { ...change(second?.number), ...words });
  await store.write(cancelItem, change(first?.number));
  await store.write(cancelItems, { laneKey, actor });
  const plans = [...asked].filter((sql) => /^(?:select|update)/.test(sql)).flatMap(planOf);
  expect(plans.length).toBeGreaterThan(5);
  expect(plans.filter((detail) => detail.startsWith('SCAN'))).toEqual([]);
});

it('lists and finds the waiting items of all conversations without reading ended ones', async () => {
  asked.clear();
  await store.read(readQueuedItems, { limit: 5 });
  await store.read(findQueuedItem, { id: 'any' });
  const plans = [...asked].flatMap(planOf);
  expect(plans.length).toBeGreaterThan(5);
  expect(
    plans.filter((detail) => /^SCAN (?!inbox USING INDEX inbox(?:Open|Due))|B-TREE/.test(detail)),
  ).toEqual([]);
});

it('lists lanes page by page without reading idle lanes or ended work', async () => {
  asked.clear();
  const { lanes } = await store.read(readLiveLanes, { limit: 5, leaseMs: 30_000 });
  await store.read(readLiveLanes, { limit: 5, leaseMs: 30_000, after: { group: 'idle', key: 'any' } });
  expect(lanes.length).toBeGreaterThan(0);
  const plans = [...asked].flatMap(planOf);
  expect(plans).toContainEqual(expect.stringContaining('INDEX lanesUnfinished'));
  expect(plans).toContainEqual(expect.stringContaining('INDEX lanesOfPeople (key>?)'));
  const isWhole =
    /^SCAN (?!running$|waiting$|busy$|lanes USING (?:COVERING )?INDEX lanesUnfinished$)|inboxOrder/;
  expect(plans.filter((detail) => isWhole.test(detail))).toEqual([]);
});

it('joins the parts of an album, and closes an unaddressed one, without reading the history', async () => {
  const { worker, saying, laneKey } = aConversation(store);
  const photo = { kind: 'image', ref: 'photo' } as const;
  const content = { text: 'look', prompt: 'look', sender: { id: 'ann', name: 'ann' }, sentAt: 1 };
  const item = { id: crypto.randomUUID(), content: { ...content, attachments: [photo] } };
  await worker.accept(saying('look', { item: { ...item, bundle: { name: 'album:1', windowMs: 0 } } }));
  asked.clear();
  await store.write(storeFetched, { inboxId: item.id, attachments: [photo], stored: [], joinMs: 0 });
  await store.write(closeBundles, { laneKeys: [laneKey], limit: 1 });
  const plans = [...asked].flatMap(planOf).filter((detail) => detail.includes('inbox'));
  expect(plans.length).toBeGreaterThan(2);
  // By lane alone, the query would read everything ever said in the lane.
  expect(plans.filter((detail) => /^SCAN|INDEX inboxOrder \(laneKey=\?\)$/.test(detail))).toEqual([]);
});

it('frees what a dead process held without reading every lane', async () => {
  await sayAndAnswer('ezra');
  asked.clear();
  const sends = [{ holder: 'dead', begun: ['part'] }];
  await store.write(voidProcesses, { ids: ['dead'], sends });
  const plans = [...asked].flatMap(planOf);
  expect(plans.length).toBeGreaterThan(5);
  // Of lanes it reads only those held, of parts only the open ones; accounts are few.
  const isWhole =
    /^SCAN (?!accounts$|.*USING (?:COVERING )?INDEX (?:outboxOpen|lanesUnfinished|childrenLive|callApprovalsOpen)|CONSTANT ROW)/;
  expect(plans.filter((detail) => isWhole.test(detail))).toEqual([]);
});

it('recovers a run without reading other sessions', async () => {
  const worker = aWorker(store);
  await worker.accept(aMessage({ conversation: 'emil', text: 'hello' }));
  const run = await worker.claimRun(aLane('emil').key);
  asked.clear();
  await store.write(recoverRun, run);
  const plans = [...asked].filter((sql) => sql.startsWith('select')).flatMap(planOf);
  expect(plans.length).toBeGreaterThan(2);
  expect(plans.filter((detail) => detail.startsWith('SCAN'))).toEqual([]);
  // By session alone, the query would read everything ever said in the session.
  expect(plans.filter((detail) => /^SEARCH transcript .*\(sessionId=\?\)/.test(detail))).toEqual([]);
});

function planOf(sql: string): readonly string[] {
  const values = Array.from(sql.match(/\?/g) ?? [], () => null);
  const rows = sqlite.prepare(`explain query plan ${sql}`).all(values) as { readonly detail: string }[];
  return rows.map(({ detail }) => detail);
}

/** Takes one message from its arrival to its delivered answer, through every step. */
async function sayAndAnswer(conversation: string): Promise<ClaimedRun> {
  const worker = aWorker(store);
  const people = { senders: ['ann'], peers: ['test:ann'], identities: ['ann'] };
  await store.read(readArrivalFacts, { account, conversations: [conversation], ...people });
  await worker.accept(aMessage({ conversation, text: 'hello' }));
  const run = await worker.claimRun(aLane(conversation).key);
  await store.read(readHistory, { sessionId: run.sessionId });
  await store.read(needsBoundary, run);
  const { effects } = await worker.answer(run, 'hello to you');
  const [conversationKey = ''] = effects.deliveries;
  const courier = aCourier(store, conversationKey);
  await courier.record(await courier.claimPart(), { kind: 'sent', receipts: [] }, true);
  return run;
}

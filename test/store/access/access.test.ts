import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { decideOnPage } from '../../../src/store/access/decide-approval.ts';
import { revokeOnConsole } from '../../../src/store/access/operate-access.ts';
import { readOpenApprovals } from '../../../src/store/approvals/approval.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import { noEffects } from '../../../src/store/base/effects.ts';
import { findChild } from '../../../src/store/children/child.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { titleLaneOf } from '../../../src/store/lanes/titles.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { isLong } from '../../support/long-run.ts';
import { aBot, approve, atConsole, readAccessRows, shownCode } from '../access-builders.ts';
import { aWorker, endWithout, framing, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';
import { readLane } from '../lane-at-rest.ts';

const texts = textsFor('en');

describeEachDatabase("a stranger's pairing request", (open, beside) => {
  const forgetTries = () => beside.sql(`update "pairingTries" set "recent" = '[]'`);
  const rows = (account: string) => open().read(readAccessRows, { account });
  beforeEach(async () => {
    await forgetTries();
    for (const table of ['people', 'pairings']) await beside.sql(`delete from "${table}"`);
  });

  it('shows a stranger one code, however often they write', async () => {
    const bot = await aBot(open());
    for (const code of ['AAAA2222', 'BBBB2222', 'CCCC2222']) await bot.asks('eve', code);
    expect(await rows(bot.account)).toEqual({
      people: [],
      pending: ['eve'],
      ledger: Array(3).fill('refused dm-not-paired'),
      notices: [shownCode('AAAA2222')],
    });
    expect(await approve(open(), 'BBBB2222')).toEqual({ kind: 'unknown' });
    expect(await approve(open(), 'AAAA2222')).toMatchObject({ kind: 'approved', ref: 'test:eve' });
  });

  it('shows a new code when the old one has expired, and the old code no longer works', async () => {
    const bot = await aBot(open());
    await bot.asks('eve', 'AAAA3333');
    await beside.sql(`update "pairings" set "expiresAt" = 1 where "account" = '${bot.account}'`);
    expect(await approve(open(), 'AAAA3333')).toEqual({ kind: 'unknown' });
    await bot.asks('eve', 'BBBB3333');
    expect((await rows(bot.account)).notices).toEqual([texts.pairingCodeGone, shownCode('BBBB3333')]);
    expect(await approve(open(), 'AAAA3333')).toEqual({ kind: 'unknown' });
    expect(await approve(open(), 'BBBB3333')).toMatchObject({ kind: 'approved' });
  });

  it('lets in only the person whose code was approved, once, and on that account only', async () => {
    const [bot, other] = [await aBot(open()), await aBot(open())];
    await bot.asks('eve', 'AAAA4444');
    await bot.asks('mallory', 'BBBB4444');
    expect(await approve(open(), 'AAAA4444')).toMatchObject({ kind: 'approved', role: 'user' });
    expect(await approve(open(), 'AAAA4444')).toEqual({ kind: 'unknown' });
    const { people, pending, notices } = await rows(bot.account);
    expect({ people, pending }).toEqual({ people: [{ peerId: 'eve', role: 'user' }], pending: ['mallory'] });
    // The code has left the outbox with the request.
    const left = [texts.pairingCodeGone, texts.pairingApprovedAsk, shownCode('BBBB4444')];
    expect(notices.toSorted()).toEqual(left.toSorted());
    expect((await rows(other.account)).people).toEqual([]);
    await expect(other.says('eve', 'user')).rejects.toSatisfy((error) => hasCode(error, 'access_changed'));
  });

  it('lets a person in once when two processes approve at once', async () => {
    const second = await beside.open();
    onTestFinished(() => second.close());
    for (let n = 0; n < 4; n++) {
      await forgetTries();
      const bot = await aBot(open());
      await bot.asks('eve', `AAAA55${n + 2}2`);
      const both = await Promise.all([open(), second].map((store) => approve(store, `AAAA55${n + 2}2`)));
      expect(both.map(({ kind }) => kind).sort()).toEqual(['approved', 'unknown']);
      expect(
        (await rows(bot.account)).notices.filter((text) => text === texts.pairingApprovedAsk),
      ).toHaveLength(1);
    }
  });

  it('refuses a fourth pending request and keeps the three earlier ones', { timeout: 300_000 }, async () => {
    const second = await beside.open();
    onTestFinished(() => second.close());
    const bot = await aBot(open());
    await bot.asks('ann', 'AAAA6666');
    await Promise.all(
      Array.from({ length: 200 }, (_, n) => bot.asks(`flood-${n}`, codeOf(n), n % 2 === 0 ? open() : second)),
    );
    const { pending, ledger, notices } = await rows(bot.account);
    expect(pending).toHaveLength(3);
    expect(pending).toContain('ann');
    expect(notices).toHaveLength(3);
    expect(ledger.filter((line) => line === 'refused pairing-full')).toHaveLength(198);
    expect(await approve(open(), 'AAAA6666')).toMatchObject({ kind: 'approved', ref: 'test:ann' });
  });

  it("allows ten attempts a minute across all processes, after which even a right code isn't checked", async () => {
    const bot = await aBot(open());
    await bot.asks('eve', 'AAAA7777');
    const tries = [];
    for (let n = 0; n < 12; n++) tries.push((await approve(open(), codeOf(n))).kind);
    expect(tries).toEqual([...Array(10).fill('unknown'), 'limited', 'limited']);
    const restarted = await beside.open();
    onTestFinished(() => restarted.close());
    expect(await approve(restarted, 'AAAA7777')).toEqual({ kind: 'limited' });
    await forgetTries();
    expect(await approve(restarted, 'AAAA7777')).toMatchObject({ kind: 'approved' });
  });

  it('issues no new code after a denial until the first code would have expired', async () => {
    const bot = await aBot(open());
    await bot.asks('eve', 'AAAA8888');
    expect(await open().write(revokeOnConsole, { ref: 'test:eve', by: atConsole })).toMatchObject({
      people: 0,
      requests: 1,
    });
    await bot.asks('eve', 'BBBB8888');
    expect(await rows(bot.account)).toMatchObject({
      pending: [],
      ledger: ['refused dm-not-paired', 'refused dm-not-paired'],
      notices: [texts.pairingCodeGone],
    });
    for (const code of ['AAAA8888', 'BBBB8888']) expect((await approve(open(), code)).kind).toBe('unknown');
    // A request that was turned down doesn't count towards the limit.
    for (const peer of ['ann', 'bob', 'cid']) await bot.asks(peer, codeOf(peer.charCodeAt(0)));
    expect((await rows(bot.account)).pending).toEqual(['ann', 'bob', 'cid']);
  });
});

describeEachDatabase('the first approved person', (open, beside) => {
  it('makes exactly one approved person owner when several are approved on the console at once', async () => {
    const second = await beside.open();
    onTestFinished(() => second.close());
    const bot = await aBot(open());
    const people = ['ann', 'bob', 'cid'];
    for (const [n, peer] of people.entries()) await bot.asks(peer, codeOf(n));
    await Promise.all(people.map((_, n) => approve(n === 0 ? open() : second, codeOf(n), 'owner-if-none')));
    const { people: stored } = await open().read(readAccessRows, { account: bot.account });
    expect(stored.map(({ role }) => role).sort()).toEqual(['owner', 'user', 'user']);
  });

  it.each(['the console', 'the page'])(
    'makes exactly one person owner when the page and %s approve at once',
    async (other) => {
      const second = await beside.open();
      onTestFinished(() => second.close());
      for (let round = 0; round < 3; round++) {
        await beside.sql('delete from people');
        await beside.sql('delete from "pairingTries"');
        const bots = [await aBot(open()), await aBot(open())] as const;
        for (const [n, bot] of bots.entries()) await bot.asks('ann', codeOf(10 + n));
        const asked = await open().read(readOpenApprovals, { limit: 10, isDue: false });
        const onPage = (store: Store, { account }: { readonly account: string }) => {
          const id = asked.find(({ details }) => details.account === account)?.id ?? '';
          const by = { ...atConsole, role: 'owner-if-none' } as const;
          return store.write(decideOnPage, { id, verdict: 'approve', by });
        };
        await Promise.all([
          onPage(open(), bots[0]),
          other === 'the page' ? onPage(second, bots[1]) : approve(second, codeOf(11), 'owner-if-none'),
        ]);
        const rows = await Promise.all(bots.map(({ account }) => open().read(readAccessRows, { account })));
        const roles = rows.flatMap(({ people }) => people.map(({ role }) => role));
        expect(roles.sort()).toEqual(['owner', 'user']);
      }
    },
  );
});

describeEachDatabase('a revocation', (open, beside) => {
  const find = (childId: string) => open().read(findChild, { childId });
  const revoke = (peer: string) => open().write(revokeOnConsole, { ref: `test:${peer}`, by: atConsole });
  const forgetTries = () => beside.sql(`update "pairingTries" set "recent" = '[]'`);
  const letIn = async (peer: string) => {
    const bot = await aBot(open());
    await forgetTries();
    await bot.asks(peer, 'AAAA9999');
    expect((await approve(open(), 'AAAA9999')).kind).toBe('approved');
    return bot;
  };
  const outcomes = async (laneKey: string) =>
    (await readLane(open(), laneKey)).inbox.map(
      ({ state, outcome, reason }) => `${state} ${outcome} ${reason}`,
    );

  it('refuses the unread messages of a revoked person', async () => {
    const peer = unique('eve');
    const bot = await letIn(peer);
    expect((await bot.says(peer, 'user')).acceptances).toMatchObject([{ kind: 'accepted' }]);
    await revoke(peer);
    await expect(bot.says(peer, 'user')).rejects.toSatisfy((error) => hasCode(error, 'access_changed'));
    expect(await outcomes(bot.laneOf(peer).key)).toEqual(['ended refused access-revoked']);
    // A message that left nothing in the store is redelivered and decided again.
    expect((await bot.asks(peer, 'BBBB9999')).acceptances).toEqual([
      { kind: 'refused', reason: 'dm-not-paired' },
    ]);
  });

  it("stops the runs of a revoked person and nobody else's", async () => {
    const worker = aFamilyWorker(open());
    const [eve, ann] = [unique('eve'), unique('ann')];
    const begin = async (peer: string) => {
      const bot = await letIn(peer);
      await bot.says(peer, 'user');
      const run = await worker.claimRun(bot.laneOf(peer).key, 60_000);
      return { run, child: await worker.spawnOne(run) };
    };
    const [ofEve, ofAnn] = [await begin(eve), await begin(ann)];
    const { effects } = await revoke(eve);
    expect(effects.cancels).toEqual([{ runId: ofEve.run.runId, reason: 'revoked' }]);
    expect(effects.stoppedChildren).toEqual([ofEve.child.id]);
    expect(await find(ofAnn.child.id)).toMatchObject({ state: 'queued' });
    expect(await revoke(eve)).toEqual({ people: 0, requests: 0, effects: noEffects() });
  });

  it.each([
    { stage: 'queued', child: 'stopped', told: 'none' },
    { stage: 'at work', child: 'stopped', told: 'none' },
    { stage: 'announced', child: 'completed', told: 'lane' },
    { stage: 'reported by a run', child: 'completed', told: 'lane' },
  ])(
    "ends a revoked person's sub-agent that outlived its run: $stage",
    async ({ stage, child: status, told }) => {
      const worker = aFamilyWorker(open());
      const peer = unique('eve');
      const bot = await letIn(peer);
      const { key } = bot.laneOf(peer);
      await bot.says(peer, 'user');
      const run = await worker.claimRun(key);
      const child = await worker.spawnOne(run);
      await worker.answer(run, 'I have asked somebody.');
      const childRun = stage === 'queued' ? undefined : await worker.claimRun(child.laneKey);
      const isDone = childRun !== undefined && stage !== 'at work';
      if (isDone) await worker.answer(childRun, 'Found.');
      const report = stage === 'reported by a run' ? await worker.claimRun(key) : undefined;

      const { effects } = await revoke(peer);
      expect(effects.stoppedChildren).toEqual(isDone ? [] : [child.id]);
      const active = [report, isDone ? undefined : childRun].filter((one) => one !== undefined);
      const reasonOf = (one: unknown) => (one === report ? 'revoked' : 'stop');
      expect(effects.cancels).toEqual(active.map((one) => ({ runId: one.runId, reason: reasonOf(one) })));
      for (const one of active) await endWithout(open(), one, 'stop');
      expect(await find(child.id)).toMatchObject({ state: 'done', status, told });
      // Nothing is left that would start a run with rights that the person no longer has.
      const { inbox, openRuns } = await readLane(open(), key);
      const left = inbox.filter(({ state }) => state !== 'ended');
      expect({ left, openRuns }).toEqual({ left: [], openRuns: 0 });
      expect(await worker.claim(key)).toEqual({ kind: 'idle' });
    },
  );

  it("ends the pending title of a revoked person's conversation and nobody else's", async () => {
    const titleModels = { byAgent: {}, byDefault: 'demo' };
    const worker = aWorker(open(), undefined, undefined, titleModels);
    const begin = async (peer: string) => {
      const bot = await letIn(peer);
      await bot.says(peer, 'user');
      return titleLaneOf((await worker.claimRun(bot.laneOf(peer).key)).sessionId);
    };
    const eve = unique('eve');
    const [ofEve, ofAnn] = [await begin(eve), await begin(unique('ann'))];
    await revoke(eve);
    expect(await outcomes(ofEve)).toEqual(['ended refused access-revoked']);
    expect(await worker.claim(ofEve)).toEqual({ kind: 'idle' });
    expect((await worker.claim(ofAnn)).kind).toBe('run');
  });

  it("ends a revoked person's messages even if the cap has summarized them", async () => {
    const peer = unique('eve');
    const bot = await letIn(peer);
    const { key } = bot.laneOf(peer);
    await bot.says(peer, 'user');
    await beside.sql(`update lanes set cap = 1, overrides = '{"cap":1}' where key = '${key}'`);
    await bot.says(peer, 'user');
    expect(await outcomes(key)).toEqual(['ended merged summarized', 'waiting null null']);
    await revoke(peer);
    expect(await outcomes(key)).toEqual(Array(2).fill('ended refused access-revoked'));
    expect(await open().read(overflowOf, { laneKey: key })).toBeNull();
  });

  it("doesn't requeue a revoked person's message or announcement steered in under steer-backlog", async () => {
    const worker = aFamilyWorker(open());
    const peer = unique('eve');
    const bot = await letIn(peer);
    await bot.says(peer, 'user');
    const { key } = bot.laneOf(peer);
    const overrides = '{"mode":"steer-backlog"}';
    await beside.sql(
      `update lanes set mode = 'steer-backlog', overrides = '${overrides}' where key = '${key}'`,
    );
    const run = await worker.claimRun(key, 60_000);
    const child = await worker.spawnOne(run);
    await worker.answer(await worker.claimRun(child.laneKey), 'Found.');
    await bot.says(peer, 'user');
    const { steers } = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(steers).toHaveLength(2);
    await revoke(peer);
    await endWithout(open(), run, 'stop');
    expect(await outcomes(key)).toEqual(Array(3).fill('ended cancelled stop'));
  });

  it("refuses a message, or doesn't accept it at all, if its sender is revoked at the same time", {
    timeout: 300_000,
  }, async () => {
    const second = await beside.open();
    onTestFinished(() => second.close());
    const seen = new Set<string>();
    for (let n = 0; n < (isLong ? 60 : 21); n++) {
      const peer = unique('eve');
      const bot = await letIn(peer);
      const early = n % 3 === 0 ? [] : [bot.says(peer, 'user', 'early')];
      const [accepted] = await Promise.all([
        Promise.allSettled([...early, bot.says(peer, 'user', 'late')]),
        second.write(revokeOnConsole, { ref: `test:${peer}`, by: atConsole }),
      ]);
      for (const { status } of accepted) seen.add(status);
      expect(new Set(await outcomes(bot.laneOf(peer).key).catch(() => []))).toEqual(
        accepted.some(({ status }) => status === 'fulfilled')
          ? new Set(['ended refused access-revoked'])
          : new Set(),
      );
    }
    expect(seen.size).toBeGreaterThan(0);
  });

  it('rejects the approval of a person who was revoked before', async () => {
    const bot = await aBot(open());
    await forgetTries();
    await bot.asks('late', 'AAAA2345');
    await revoke('late');
    expect(await approve(open(), 'AAAA2345')).toEqual({ kind: 'unknown' });
  });
});

/** Returns a different code for each number. */
function codeOf(n: number): string {
  return `ZZ${String(n).padStart(6, '2').replaceAll('0', 'X').replaceAll('1', 'Y')}`;
}

const overflowOf: StoreQuery<{ readonly laneKey: string }, string | null> = {
  query: 'overflowOf',
  run: async (tx, { laneKey }) => {
    const lane = tx.db.selectFrom('lanes').select('overflow').where('key', '=', laneKey);
    return (await lane.executeTakeFirstOrThrow()).overflow;
  },
};

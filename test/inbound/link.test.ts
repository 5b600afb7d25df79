import { beforeEach, expect, it } from 'vitest';
import { newOneTimeCode } from '../../src/commands/one-time-code.ts';
import { textOf } from '../../src/contracts/message.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { routeFor } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { isLong } from '../support/long-run.ts';

const guesses = isLong ? 50_000 : 500;

import { type Account, anAccount, createIntakeFixture, labelOf, refOf } from './support/intake-fixture.ts';

describeEachDatabase('linking accounts', (open, beside) => {
  beforeEach(() => beside.sql('delete from "linkGuesses"'));

  it('joins two conversations, and answers each question on its own route', async () => {
    const town = createIntakeFixture(open());
    const [first, second, third] = [anAccount('alpha'), anAccount('beta'), anAccount('gamma')];
    const begun = town.laneOf(await town.send(first, 'I like red.'));
    await town.worker.answer(await town.worker.claimRun(begun), 'Noted.');
    await town.link(first, second);
    await town.link(second, third);

    const lanes = [];
    for (const [from, text] of [
      [second, 'Which colour?'],
      [third, 'And now?'],
      [first, 'Still?'],
    ] as const) {
      const laneKey = town.laneOf(await town.send(from, text));
      lanes.push(laneKey);
      const run = await town.worker.claimRun(laneKey);
      expect(routeFor(run)).toMatchObject({ channel: from.channel, conversation: from.peer });
      await town.worker.answer(run, `Answer to: ${text}`);
      expect((await town.said(from)).at(-1)).toBe(`Answer to: ${text}`);
    }
    expect(new Set([begun, ...lanes]).size).toBe(1);
    expect(await transcriptOf(open(), begun)).toEqual([
      ...[
        'user: I like red.',
        'assistant: Noted.',
        'user: Which colour?',
        'assistant: Answer to: Which colour?',
      ],
      ...['user: And now?', 'assistant: Answer to: And now?', 'user: Still?', 'assistant: Answer to: Still?'],
    ]);
  });

  it('tells both conversations about the link, and lists the accounts in each', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    await town.link(asker, joiner);
    expect((await town.said(asker)).at(-1)).toContain(`${labelOf(joiner)} is now linked with this account`);
    expect((await town.said(joiner)).at(-1)).toContain(`This account is now linked with ${labelOf(asker)}`);
    await town.send(joiner, '/link list');
    const list = (await town.said(joiner)).at(-1);
    expect(list?.split('\n').slice(1).sort()).toEqual([refOf(asker), `${refOf(joiner)} (this one)`].sort());
  });

  it('links accounts of any authority only after a confirmation by the same account in the same chat', async () => {
    for (const owner of ['asker', 'joiner', 'neither'] as const) {
      await beside.sql('delete from "linkGuesses"');
      const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
      const config = { owners: { asker: [refOf(asker)], joiner: [refOf(joiner)], neither: [] }[owner] };
      const town = createIntakeFixture(open(), { config });
      const [elsewhere, other] = [{ ...joiner, bot: 'other' }, anAccount('beta')];
      const code = await town.ask(asker);
      const lastTo = async (to: typeof joiner) => (await town.said(to)).at(-1) ?? '';

      await town.send(joiner, `/link confirm ${code}`);
      expect(await lastTo(joiner)).toContain('There’s nothing to confirm here.');
      await town.send(joiner, `/link ${code}`);
      expect(await lastTo(joiner)).toContain(`join this account and ${labelOf(asker)}`);
      expect(await lastTo(joiner)).toContain(`/link confirm ${code}`);
      for (const stranger of [elsewhere, other]) {
        await town.send(stranger, `/link confirm ${code}`);
        expect(await lastTo(stranger)).toContain('There’s nothing to confirm here.');
      }
      await town.send(other, `/link ${code}`);
      expect(await lastTo(other)).toContain('That code isn’t valid');
      await town.send(joiner, '/link list');
      expect(await lastTo(joiner)).toContain('isn’t linked');
      // A new process knows what was offered, because it is stored.
      await beside.sql('delete from "linkGuesses"');
      await createIntakeFixture(open(), { config }).send(joiner, `/link confirm ${code}`);
      expect(await lastTo(joiner)).toContain(`This account is now linked with ${labelOf(asker)}`);
      await town.send(joiner, `/link confirm ${code}`);
      expect(await lastTo(joiner)).toContain('There’s nothing to confirm here.');
    }
  });

  it('asks for confirmation even if the code came with a link or an account is already linked', async () => {
    const [asker, joiner, third] = [anAccount('alpha'), anAccount('beta'), anAccount('gamma')];
    const town = createIntakeFixture(open(), { config: { owners: [refOf(third)] } });
    const code = await town.ask(asker);
    await town.send(joiner, `/start link_${code}`);
    expect((await town.said(joiner)).at(-1)).toContain(`/link confirm ${code}`);
    await town.send(joiner, `/link confirm ${code}`);
    expect((await town.said(joiner)).at(-1)).toContain('is now linked with');
    await town.send(third, `/link ${await town.ask(joiner)}`);
    expect((await town.said(third)).at(-1)).toContain('/link confirm');
  });

  it('loses nothing that waits or is to be delivered on either side of a link', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    const askersLane = town.laneOf(await town.send(asker, 'asker: first'));
    const joinersLane = town.laneOf(await town.send(joiner, 'joiner: first'));
    const [askersRun, joinersRun] = [
      await town.worker.claimRun(askersLane),
      await town.worker.claimRun(joinersLane),
    ];
    await town.send(asker, 'asker: second');
    await town.send(joiner, 'joiner: second');
    await town.link(asker, joiner);
    const shared = town.laneOf(await town.send(joiner, 'joiner: third'));
    expect(shared).toBe(askersLane);

    const extended = await town.worker.answer(askersRun, 'to the asker');
    expect(extended.steers.map((steer) => textOf(steer.parts))).toEqual(['asker: second']);
    await town.worker.answer(askersRun, 'to the asker again');
    const another = await town.worker.answer(joinersRun, 'to the joiner');
    expect(another.steers.map((steer) => textOf(steer.parts))).toEqual(['joiner: second']);
    await town.worker.answer(joinersRun, 'to the joiner again');
    const run = await town.worker.claimRun(shared);
    expect(routeFor(run).channel).toBe('beta');
    await town.worker.answer(run, 'to the joiner, shared');

    expect((await town.said(asker)).filter((text) => text.startsWith('to'))).toEqual([
      ...['to the asker', 'to the asker again'],
    ]);
    expect((await town.said(joiner)).filter((text) => text.startsWith('to'))).toEqual([
      ...['to the joiner', 'to the joiner again', 'to the joiner, shared'],
    ]);
    expect(await transcriptOf(open(), joinersLane)).toHaveLength(4);
    expect(await openRows(open(), [askersLane, joinersLane])).toEqual([]);
  });

  it('continues the threads of a linked conversation', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    const thread = town.laneOf(await town.send(asker, 'hello', { thread: '9' }));
    await town.link(asker, joiner);
    expect(town.laneOf(await town.send(asker, 'hello again', { thread: '9' }))).toBe(thread);
    expect(town.laneOf(await town.send(joiner, 'hello'))).toBe(thread.replace(':thread:9', ''));
  });

  it('uses up a code, even if two processes redeem it at the same moment', async () => {
    const town = createIntakeFixture(open());
    const elsewhere = await beside.open();
    const other = createIntakeFixture(elsewhere, { holder: 'boot-2' });
    try {
      for (let n = 0; n < 20; n++) {
        const asker = anAccount('alpha');
        const code = await town.ask(asker);
        const [one, two] = [anAccount('beta'), anAccount('delta')];
        await beside.sql('delete from "linkGuesses"');
        await Promise.all([town.send(one, `/link ${code}`), other.send(two, `/link ${code}`)]);
        const answers = [...(await town.said(one)), ...(await town.said(two))];
        expect(answers.filter((text) => text.includes('This would join')).length).toBe(1);
        expect(answers.filter((text) => text.includes('That code isn’t valid')).length).toBe(1);
        await Promise.all([
          town.send(one, `/link confirm ${code}`),
          other.send(two, `/link confirm ${code}`),
        ]);
        const ends = [...(await town.said(one)), ...(await town.said(two))];
        expect(ends.filter((text) => text.includes('is now linked with')).length).toBe(1);
      }
    } finally {
      await elsewhere.close();
    }
  });

  it("rejects a code that has expired, was replaced, was shown to a group, or is one's own", async () => {
    const town = createIntakeFixture(open());
    const wrong = expect.stringContaining('That code isn’t valid');
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];

    const expired = await town.ask(asker);
    await beside.sql(`update "linkCodes" set "expiresAt" = 1`);
    await town.send(joiner, `/link ${expired}`);
    expect((await town.said(joiner)).at(-1)).toEqual(wrong);

    const replaced = await town.ask(asker);
    const shown = await town.ask(asker);
    await town.send(joiner, `/link ${replaced}`);
    expect((await town.said(joiner)).at(-1)).toEqual(wrong);

    await town.send(anAccount('beta'), `/link ${shown}`, { group: unusedGroup(), mentionsBot: true });
    await town.send(joiner, `/link ${shown}`);
    expect((await town.said(joiner)).at(-1)).toEqual(wrong);

    await town.send(asker, `/link ${await town.ask(asker)}`);
    expect((await town.said(asker)).at(-1)).toContain('You created that code here');
    await town.send(asker, '/link list');
    expect((await town.said(asker)).at(-1)).toContain('isn’t linked');
  });

  it('stores no code in plain text, and none at all once it is used', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    const code = await town.ask(asker);
    expect(JSON.stringify(await open().read(storedCodes, {}))).not.toContain(code);
    await town.send(joiner, `/link ${code.toLowerCase().slice(0, 4)}-${code.toLowerCase().slice(4)}`);
    await town.send(joiner, `/link confirm ${code}`);
    expect((await town.said(joiner)).at(-1)).toContain('is now linked with');
    expect(JSON.stringify(await open().read(everyText, {}))).not.toContain(code);
  });

  it('lets only people with access link', async () => {
    const owner = anAccount('alpha');
    const town = createIntakeFixture(open(), {
      config: { owners: [refOf(owner)] },
      access: { dmPolicy: 'allowlist', allowFrom: [] },
    });
    const stranger = anAccount('beta');
    expect(await town.send(stranger, '/link')).toEqual({ kind: 'refused', reason: 'dm-not-allowed' });
    const code = await town.ask(owner);
    expect(await town.send(stranger, `/link ${code}`)).toEqual({ kind: 'refused', reason: 'dm-not-allowed' });
    await town.send(owner, '/link list');
    expect((await town.said(owner)).at(-1)).toContain('isn’t linked');
  });

  it('links once and says so once when the same event is redelivered', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    const code = await town.ask(asker);
    for (const [n, text] of [`/link ${code}`, `/link confirm ${code}`].entries()) {
      const once = { eventKey: `event:${code}:${n}` };
      expect((await town.send(joiner, text, once)).kind).toBe('command');
      expect((await town.send(joiner, text, once)).kind).toBe('duplicate');
      expect(await town.said(joiner)).toHaveLength(n + 1);
    }
  });

  it('refuses to merge two identities that are already linked elsewhere', async () => {
    const town = createIntakeFixture(open());
    const [a, b, c, d] = [anAccount('alpha'), anAccount('beta'), anAccount('alpha'), anAccount('beta')];
    await town.link(a, b);
    await town.link(c, d);
    await town.link(a, d);
    expect((await town.said(d)).at(-1)).toContain('already linked elsewhere');
    await town.link(a, b);
    expect((await town.said(b)).at(-1)).toContain('linked with');
    expect((await town.said(b)).at(-1)).toContain('already');
  });

  it("joins a configured identity, which can't be unlinked in chat", async () => {
    const [page, phone] = [anAccount('alpha'), anAccount('beta')];
    const town = createIntakeFixture(open(), {
      config: { identityLinks: { alice: [refOf(page), 'gamma:else'] } },
    });
    const lane = town.laneOf(await town.send(page, 'hello'));
    expect(lane).toBe('main:*:*:dm:alice');
    await town.link(phone, page);
    expect(town.laneOf(await town.send(phone, 'hello'))).toBe(lane);
    await town.send(phone, `/link remove ${refOf(page)}`);
    expect((await town.said(phone)).at(-1)).toContain('is linked in the configuration');
    await town.send(phone, '/link list');
    expect((await town.said(phone)).at(-1)).toContain(`${refOf(page)} (by the configuration)`);
    await town.send(page, `/link remove ${refOf(phone)}`);
    expect(town.laneOf(await town.send(phone, 'hello'))).not.toBe(lane);
    expect((await town.said(phone)).at(-1)).toContain('unlinked this account');
  });
});

describeEachDatabase('unlinking an account', (open, beside) => {
  beforeEach(() => beside.sql('delete from "linkGuesses"'));

  it('returns the joined account to its own conversation', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    const own = town.laneOf(await town.send(joiner, 'before'));
    await town.link(asker, joiner);
    expect(town.laneOf(await town.send(joiner, 'linked'))).not.toBe(own);
    await town.send(joiner, `/link remove ${refOf(joiner)}`);
    expect(town.laneOf(await town.send(joiner, 'after'))).toBe(own);
  });

  it('excludes an unlinked account from the conversation that the others keep', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    const shared = town.laneOf(await town.send(asker, 'before'));
    await town.link(asker, joiner);
    await town.send(joiner, `/link remove ${refOf(asker)}`);
    expect((await town.said(asker)).at(-1)).toContain('unlinked this account');
    expect(town.laneOf(await town.send(joiner, 'my secret'))).toBe(shared);
    const alone = town.laneOf(await town.send(asker, 'what was said?'));
    expect(alone).not.toBe(shared);
    expect(town.laneOf(await town.send(asker, 'again'))).toBe(alone);
    expect(await transcriptOf(open(), alone)).toEqual([]);
    await town.send(asker, '/link list');
    expect((await town.said(asker)).at(-1)).toContain('isn’t linked');

    const third = anAccount('gamma');
    await town.link(asker, third);
    expect(town.laneOf(await town.send(third, 'hello'))).toBe(alone);
  });

  it.each(['asks', 'is asked'] as const)('lets an unlinked account be linked again: it %s', async (role) => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    await town.link(asker, joiner);
    await town.send(joiner, `/link remove ${refOf(asker)}`);
    const [first, second] = role === 'asks' ? [asker, joiner] : [joiner, asker];
    const lane = town.laneOf(await town.send(first, 'alone'));
    await town.link(first, second);
    expect((await town.said(second)).at(-1)).toContain('now linked with');
    expect(town.laneOf(await town.send(second, 'together'))).toBe(lane);
    expect(town.laneOf(await town.send(first, 'together'))).toBe(lane);
    await town.send(joiner, `/link remove ${refOf(asker)}`);
    expect(town.laneOf(await town.send(joiner, 'my secret'))).toBe(lane);
    expect(town.laneOf(await town.send(asker, 'what was said?'))).not.toBe(lane);
  });

  it('lets an unlinked account be linked with others, whose conversation continues', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner, one, other] = ['alpha', 'beta', 'gamma', 'alpha'].map(anAccount) as Four;
    await town.link(asker, joiner);
    await town.send(joiner, `/link remove ${refOf(asker)}`);
    await town.link(one, other);
    const lane = town.laneOf(await town.send(one, 'before'));
    await town.link(asker, other);
    expect(town.laneOf(await town.send(asker, 'together'))).toBe(lane);
    await town.link(joiner, one);
    expect(town.laneOf(await town.send(joiner, 'all of us'))).toBe(lane);
  });

  it('lets only linked accounts unlink', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner, stranger] = [anAccount('alpha'), anAccount('beta'), anAccount('gamma')];
    await town.link(asker, joiner);
    await town.send(stranger, `/link remove ${refOf(asker)}`);
    expect((await town.said(stranger)).at(-1)).toContain('isn’t linked with this account');
    await town.send(asker, '/link list');
    expect((await town.said(asker)).at(-1)).toContain(refOf(joiner));
  });
});

describeEachDatabase('guessing a link code', (open, beside) => {
  beforeEach(() => beside.sql('delete from "linkGuesses"'));

  it('checks ten guesses a minute in total, and then not even a right code', async () => {
    const town = createIntakeFixture(open());
    const asker = anAccount('alpha');
    const code = await town.ask(asker);
    const guessers = Array.from({ length: 40 }, () => anAccount('beta'));
    for (const guesser of guessers) await town.send(guesser, '/link AAAAAAAA');
    const answers = (await Promise.all(guessers.map(town.said))).flat();
    expect(answers.filter((text) => text.includes('code isn’t valid')).length).toBe(10);
    expect(answers.filter((text) => text.includes('Too many attempts')).length).toBe(30);

    const restarted = await beside.open();
    const late = createIntakeFixture(restarted, { holder: 'boot-2' });
    const joiner = anAccount('epsilon');
    await late.send(joiner, `/link ${code}`);
    expect((await late.said(joiner)).at(-1)).toContain('Too many attempts');
    await beside.sql(`update "linkGuesses" set "since" = "since" - 60000`);
    await late.send(joiner, `/link ${code}`);
    expect((await late.said(joiner)).at(-1)).toContain(`join this account and ${refOf(asker)}`);
    await restarted.close();
  });

  it('never succeeds by guessing, and checks no code after the first ten', { timeout: 600_000 }, async () => {
    const town = createIntakeFixture(open());
    const askers = Array.from({ length: 5 }, () => anAccount('alpha'));
    for (const asker of askers) await town.ask(asker);
    const guesser = Array.from({ length: 20 }, () => anAccount('beta'));
    const kinds = new Map<string, number>();
    for (let n = 0; n < guesses; n++) {
      const from = guesser[n % guesser.length] ?? anAccount('beta');
      await town.send(from, `/link ${newOneTimeCode()}`);
    }
    for (const one of guesser) {
      for (const text of await town.said(one)) {
        const kind = text.split('.')[0] ?? '';
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      }
    }
    expect([...kinds.keys()].sort()).toEqual(['That code isn’t valid or has expired', 'Too many attempts']);
    // A slow machine may take several minutes for them, and each minute allows ten attempts.
    expect(kinds.get('That code isn’t valid or has expired')).toBeLessThan(guesses / 2);
    expect([...kinds.values()].reduce((sum, count) => sum + count)).toBe(guesses);
  });

  it('blocks an account after five wrong codes, even for the right one', async () => {
    const town = createIntakeFixture(open());
    const [asker, guesser] = [anAccount('alpha'), anAccount('beta')];
    const code = await town.ask(asker);
    for (let n = 0; n < 5; n++) await town.send(guesser, '/link ZZZZZZZZ');
    await town.send(guesser, `/link ${code}`);
    expect((await town.said(guesser)).at(-1)).toContain('Too many attempts');
    const gamma = anAccount('gamma');
    await town.send(gamma, `/link ${code}`);
    expect((await town.said(gamma)).at(-1)).toContain(`/link confirm ${code}`);
  });
});

type Four = [Account, Account, Account, Account];

const unusedGroup = () => `group-${crypto.randomUUID()}`;

/** Reads the transcripts of a lane's sessions, in order. */
async function transcriptOf(store: Store, laneKey: string): Promise<readonly string[]> {
  return store.read(transcript, { laneKey });
}

const transcript: StoreQuery<{ readonly laneKey: string }, readonly string[]> = {
  query: 'transcript',
  run: async (tx, { laneKey }) => {
    const rows = await tx.db
      .selectFrom('transcript')
      .innerJoin('sessions', 'sessions.id', 'transcript.sessionId')
      .select(['transcript.role', 'transcript.parts'])
      .where('sessions.key', '=', laneKey)
      .orderBy('transcript.position')
      .execute();
    return rows.map((row) => `${row.role}: ${textOf(json.parts(row.parts))}`);
  },
};

async function openRows(store: Store, laneKeys: readonly string[]) {
  const query: StoreQuery<{ readonly laneKeys: readonly string[] }, readonly string[]> = {
    query: 'openRows',
    run: async (tx, input) => {
      const rows = await tx.db
        .selectFrom('inbox')
        .select('id')
        .where('laneKey', 'in', input.laneKeys)
        .where('state', '<>', 'ended')
        .execute();
      return rows.map((row) => row.id);
    },
  };
  return store.read(query, { laneKeys });
}

const storedCodes: StoreQuery<object, unknown> = {
  query: 'storedCodes',
  run: (tx) => tx.db.selectFrom('linkCodes').selectAll().execute(),
};

const everyText: StoreQuery<object, unknown> = {
  query: 'everyText',
  run: async (tx) => [
    await tx.db.selectFrom('outbox').select('content').execute(),
    await tx.db.selectFrom('ledger').selectAll().execute(),
    await tx.db.selectFrom('inbox').select('content').execute(),
  ],
};

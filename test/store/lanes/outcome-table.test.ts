/** The table of spec 4 “Outcomes”, line by line: what ends a message, and what is recorded about it. */
import { expect, it } from 'vitest';
import type { Authority } from '../../../src/contracts/outcome.ts';
import type { QueueSettings } from '../../../src/contracts/queue-settings.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import { conversationKeyOf } from '../../../src/store/base/keys.ts';
import type { NewItem } from '../../../src/store/items/enqueue-item.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { renewLeases } from '../../../src/store/lanes/leases.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { fillText, textsFor } from '../../../src/texts/chat-texts.ts';
import { aConversation } from '../a-conversation.ts';
import { aRoute, endWithout, framing, holder, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

const texts = textsFor('en');

const outcomesOf: StoreQuery<{ readonly laneKey: string }, readonly string[]> = {
  query: 'outcomesOfLane',
  run: async (tx, { laneKey }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .select(['content', 'outcome', 'outcomeReason'])
      .where('laneKey', '=', laneKey)
      .orderBy('seq')
      .execute();
    return rows.map(({ content, outcome, outcomeReason }) => {
      const reason = outcomeReason === null ? '' : ` (${outcomeReason})`;
      return `${JSON.parse(content).text}: ${outcome ?? 'open'}${reason}`;
    });
  },
};

const mergedInto: StoreQuery<{ readonly laneKey: string }, readonly (string | null)[]> = {
  query: 'mergedInto',
  run: async (tx, { laneKey }) => {
    const rows = tx.db.selectFrom('inbox').select('runId').where('laneKey', '=', laneKey);
    return (await rows.where('outcome', '=', 'merged').execute()).map(({ runId }) => runId);
  },
};

const noticesOf: StoreQuery<{ readonly conversationKey: string }, readonly string[]> = {
  query: 'noticesOf',
  run: async (tx, { conversationKey }) => {
    const rows = tx.db.selectFrom('outbox').select('content').where('conversationKey', '=', conversationKey);
    const notices = await rows.where('purpose', '=', 'notice').orderBy('place').execute();
    return notices.map(({ content }) => {
      const { emoji, text } = JSON.parse(content);
      return emoji ?? text.text;
    });
  },
};

/** Returns a lane in which ann and bob speak, with short names for its steps. */
function aScene(store: Store, settings: Partial<QueueSettings> = {}) {
  const { conversationKey, laneKey, worker, say, claimRun, command, deliver } = aConversation(store, {
    settings: { mode: 'followup', quietMs: 0, ...settings },
    chatKind: 'group',
  });
  const says = (sender: string, text: string, item: Partial<NewItem> = {}) => {
    const authority: Authority = sender === 'ann' ? 'owner' : 'member';
    return say(text, { sender, item: { authority, ...item } });
  };
  const stop = (sender: string, isPrivileged = false) =>
    command({ kind: 'stop', isPrivileged, isAll: false }, sender);
  const fresh = (sender: string) => says(sender, '/new', { kind: 'command' });
  const steer = (at: ClaimedRun) => store.write(takeSteers, { ...at, framing, delivery: 'one-at-a-time' });
  const end = (at: ClaimedRun, outcome: 'failed' | 'cancelled', outcomeReason: string) =>
    endWithout(store, at, outcomeReason, { outcome });
  const answer = (at: ClaimedRun) => worker.answer(at, 'ok', { delivery: 'none' });
  const outcomes = () => store.read(outcomesOf, { laneKey });
  const merged = () => store.read(mergedInto, { laneKey });
  const notices = () => store.read(noticesOf, { conversationKey });
  return {
    worker,
    laneKey,
    says,
    command,
    stop,
    fresh,
    run: claimRun,
    steer,
    end,
    answer,
    outcomes,
    merged,
    notices,
    deliver,
  };
}

describeEachDatabase('the outcome of a message', (open) => {
  it('ends a message as answered, or as silent if the agent chose silence', async () => {
    const { says, run, answer, worker, outcomes } = aScene(open());
    await says('ann', 'a');
    await says('ann', 'b');
    await answer(await run());
    await worker.answer(await run(), '', { parts: [], outcome: 'silent', outcomeReason: 'token' });
    expect(await outcomes()).toEqual(['a: answered', 'b: silent (token)']);
  });

  it('fails a message whose answer could not be delivered', async () => {
    const { says, run, answer, deliver, outcomes } = aScene(open());
    await says('ann', 'a');
    await answer(await run());
    await deliver({ kind: 'failed', failure: { kind: 'rejected' }, reason: 'no' });
    expect(await outcomes()).toEqual(['a: failed (delivery failed)']);
  });

  it('ends a message as answered with unknown delivery if the answer may have arrived', async () => {
    const { says, run, answer, deliver, outcomes } = aScene(open());
    await says('ann', 'a');
    await answer(await run());
    await deliver({ kind: 'unknown', reason: 'cut off' });
    expect(await outcomes()).toEqual(['a: answered (delivery unknown)']);
  });

  it('fails a message after too many crashes, and tells the group', async () => {
    const { worker, laneKey, says, run, outcomes, notices } = aScene(open());
    await says('ann', 'a');
    let held = await run();
    for (let crash = 1; crash <= 3; crash += 1) {
      await open().write(renewLeases, { holder, leaseMs: -1, runs: [held] });
      const claim = await worker.claim(laneKey);
      if (claim.kind === 'run') held = claim.run;
    }
    expect(await outcomes()).toEqual(['a: failed (gave_up)']);
    expect(await notices()).toEqual(['⚠']);
  });

  it("cancels another person's message on /stop only together with the run", async () => {
    const { says, run, stop, end, outcomes } = aScene(open());
    await says('ann', 'a');
    const at = await run();
    await says('ann', 'b');
    await says('bob', 'c');
    await stop('bob', true);
    await end(at, 'cancelled', 'stop');
    expect(await outcomes()).toEqual(['a: cancelled (stop)', 'b: open', 'c: cancelled (stop)']);
  });

  it('tells a run nothing of an earlier notice that may not have arrived', async () => {
    const { says, command, run, answer, deliver, laneKey } = aScene(open());
    await says('ann', 'a');
    await answer(await run());
    await deliver({ kind: 'sent', receipts: [] });
    await command({ kind: 'status' });
    await deliver({ kind: 'unknown', reason: 'cut' });
    await says('ann', 'b');
    await run();
    const { told } = await readLane(open(), laneKey);
    expect(told.filter(({ text }) => text.includes('Note from the gateway'))).toEqual([]);
  });

  it('refuses the message that drop:old drops, and tells its sender on the original route', async () => {
    const { says, run, outcomes, notices } = aScene(open(), { cap: 1, drop: 'old' });
    await says('ann', 'a');
    await run();
    const elsewhere = aRoute(unique('elsewhere'));
    await says('bob', 'b', { route: elsewhere });
    const { effects } = await says('ann', 'c');
    expect(await outcomes()).toEqual(['a: open', 'b: refused (queue-full)', 'c: open']);
    expect(await notices()).toEqual([]);
    expect(await open().read(noticesOf, { conversationKey: conversationKeyOf(elsewhere) })).toEqual([
      fillText(texts.queueDroppedOld, { excerpt: 'b' }),
    ]);
    expect(effects.overflows).toMatchObject([{ drop: 'old' }]);
  });

  it('refuses a message with a notice under drop:new when the lane is full', async () => {
    const { says, run, outcomes, notices } = aScene(open(), { cap: 1, drop: 'new' });
    await says('ann', 'a');
    await run();
    await says('ann', 'b');
    const { acceptances, effects } = await says('bob', 'c');
    expect(acceptances).toEqual([{ kind: 'refused', reason: 'queue-full' }]);
    expect(effects.overflows).toMatchObject([{ drop: 'new' }]);
    expect(await outcomes()).toEqual(['a: open', 'b: open']);
    expect(await notices()).toEqual([fillText(texts.queueFull, { waiting: 1 })]);
  });

  it('merges messages of the same route and authority only under collect', async () => {
    const { says, run, answer, outcomes } = aScene(open(), { mode: 'collect' });
    await says('ann', 'a');
    const at = await run();
    await says('ann', 'b');
    await says('ann', 'c');
    await says('bob', 'd');
    await says('bob', 'e', { route: aRoute(unique('elsewhere')) });
    await answer(at);
    for (const authority of ['owner', 'member', 'member']) {
      const next = await run();
      expect(next.authority).toBe(authority);
      await answer(next);
    }
    expect(await outcomes()).toEqual([
      'a: answered',
      'b: merged',
      'c: answered',
      'd: answered',
      'e: answered',
    ]);
  });
});

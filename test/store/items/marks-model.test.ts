import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { MarkSettings } from '../../../src/contracts/mark.ts';
import { failedReaction, type OutboundContent } from '../../../src/contracts/outbound.ts';
import { type QueueMode, queueModes } from '../../../src/contracts/queue-settings.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import type { SendOutcome } from '../../../src/store/delivery/end-part.ts';
import { acknowledge } from '../../../src/store/lanes/acknowledgement.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { renewLeases } from '../../../src/store/lanes/leases.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { holds } from '../../support/holds.ts';
import { isLong } from '../../support/long-run.ts';
import { aConversation, aCourier } from '../a-conversation.ts';
import { endWithout, framing, routeFor } from '../builders.ts';
import { type Beside, describeEachDatabase } from '../each-database.ts';
import { markWaitingNow, showMarksNow } from '../show-marks-now.ts';

const marks: MarkSettings = { kind: 'reaction', channels: {}, merged: '🤝', read: '✍️' };

/** What becomes of a call: whether the network acts on it, and what Parley learns. Undefined: its process is killed. */
const fates = {
  ok: [true, { kind: 'sent', receipts: [] }],
  limited: [false, { kind: 'retry', afterMs: 1000, askedMs: 1000, reason: 'too many' }],
  unanswered: [true, { kind: 'retry', afterMs: 0, reason: 'no answer' }],
  lost: [false, { kind: 'retry', afterMs: 0, reason: 'no answer' }],
  refused: [false, { kind: 'failed', failure: { kind: 'rejected' }, reason: 'REACTION_INVALID' }],
  'killed before': [false, undefined],
  'killed after': [true, undefined],
} as const satisfies Record<string, readonly [boolean, SendOutcome | undefined]>;

type Fate = keyof typeof fates;

const fate = fc.constantFrom(...(Object.keys(fates) as Fate[]));
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('arrive' as const), isAlbum: fc.boolean() }) },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constantFrom('claim', 'steer', 'answer', 'fail', 'abort', 'stop', 'resume', 'acknowledge'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('tell', 'look') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('look') }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('deliver' as const), fate }) },
);

type Step = { readonly kind: string; readonly isAlbum?: boolean; readonly fate?: Fate };

const scene = fc.record({
  mode: fc.constantFrom<QueueMode>(...queueModes),
  showsOneReaction: fc.boolean(),
  steps: fc.array(step, { maxLength: 40 }),
});

describeEachDatabase('marks', (open, beside) => {
  it('shows one mark per message at most, and none once every message has ended', async () => {
    let played = 0;
    await holds(
      fc.asyncProperty(scene, async ({ mode, showsOneReaction, steps }) => {
        const play = createPlay(open(), beside, { mode, showsOneReaction });
        for (const one of steps) await play.take(one);
        await play.end();
        played += 1;
      }),
      isLong ? { numRuns: 5_000 } : { numRuns: 100_000, interruptAfterTimeLimit: 15_000 },
    );
    if (isLong) console.info(`${beside.dialect}: ${played} sequences of marks`);
  }, 3_600_000);
});

/** One lane, and a network that shows what is on each message. */
function createPlay(
  store: Store,
  beside: Beside,
  { mode, showsOneReaction }: { readonly mode: QueueMode; readonly showsOneReaction: boolean },
) {
  const chat = aConversation(store, { settings: { mode, quietMs: 0 } });
  const { laneKey, conversationKey, worker } = chat;
  const shown = new Map<string, Set<string>>();
  const signs = new Set<string>();
  const network = { showsOneReaction, leaseMs: 60_000 };
  let run: ClaimedRun | undefined;
  let holder = 0;

  const act = (content: OutboundContent) => {
    if (content.kind !== 'reaction') return;
    const on = shown.get(content.messageId) ?? new Set();
    shown.set(content.messageId, on);
    if (showsOneReaction) on.clear();
    if (content.isRemoved) on.delete(content.emoji);
    else on.add(content.emoji);
    const all = [...on].filter((emoji) => emoji !== failedReaction);
    expect(all.length, [...on].join(' ')).toBeLessThanOrEqual(1);
  };

  /** Delivers the next part, if one is due; a killed process leaves it as it is. Returns whether there was one. */
  const deliver = async (fate: Fate): Promise<boolean> => {
    const next = await aCourier(store, conversationKey, { ...network, holder: `h${holder}` }).claimNext();
    if (next.kind !== 'part') {
      if (next.kind === 'empty') return false;
      await beside.sql(hurry(conversationKey));
      return next.kind === 'later';
    }
    // Whatever goes wrong with an answer is others' subject.
    const isMark = next.part.key.endsWith(':mark');
    // A network lets everybody take back their own reactions.
    const isRemoval = next.part.content.kind === 'reaction' && next.part.content.isRemoved === true;
    const [isActed, result] = fates[!isMark || (isRemoval && fate === 'refused') ? 'ok' : fate];
    if (isActed) act(next.part.content);
    if (result)
      await aCourier(store, conversationKey, { ...network, holder: `h${holder}` }).record(next, result);
    else {
      holder += 1;
      await beside.sql(release(conversationKey));
    }
    return true;
  };

  const tell = () => markWaitingNow(store, laneKey);

  const answer = async (isFailed = false) => {
    if (!run) return;
    const { replyTo, ...route } = routeFor(run);
    const sign = replyTo && { kind: 'reaction' as const, messageId: replyTo, emoji: failedReaction };
    const over = isFailed && sign ? { parts: [{ route, content: sign, purpose: 'notice' as const }] } : {};
    const answered = await worker.answer(run, 'ok', { marks, delivery: 'all', ...over });
    if (answered.cancelReason !== undefined) return abort('stop');
    if (isFailed && replyTo) signs.add(replyTo);
    if (answered.next !== undefined) run = undefined;
  };

  const abort = async (reason: string) => {
    if (run) await endWithout(store, run, reason);
    run = undefined;
  };

  const claim = async () => {
    const claimed = await worker.claim(laneKey, 10_000, { marks });
    if (claimed.kind === 'run') run = claimed.run;
  };

  const take = async ({ kind, isAlbum, fate = 'ok' }: Step): Promise<unknown> => {
    switch (kind) {
      case 'arrive':
        return chat.say('hi', isAlbum ? { item: { bundle: { name: 'album', windowMs: 0 } } } : {});
      case 'claim':
        return run ? undefined : claim();
      case 'steer':
        return run && store.write(takeSteers, { ...run, framing, marks, delivery: 'one-at-a-time' });
      case 'answer':
      case 'fail':
        return answer(kind === 'fail');
      case 'abort':
        return abort('error');
      case 'stop':
        return chat.command({ kind: 'stop', isPrivileged: true, isAll: false });
      case 'resume':
        if (!run) return undefined;
        await store.write(renewLeases, { holder: 'boot-1', leaseMs: -1, runs: [run] });
        run = undefined;
        return claim();
      case 'acknowledge': {
        const messageId = run && routeFor(run).replyTo;
        return run && messageId ? store.write(acknowledge, { ...run, messageId, emoji: '⚡' }) : undefined;
      }
      case 'tell':
        return tell();
      case 'look':
        return showMarksNow(store, laneKey);
      default:
        return deliver(fate);
    }
  };

  /** Brings the lane to rest with a network that answers. */
  const end = async () => {
    for (let left = 200; left > 0; left -= 1) {
      if (!run) await claim();
      if (!run) break;
      await answer();
    }
    for (let left = 200; left > 0; left -= 1) {
      while (await deliver('ok'));
      if ((await showMarksNow(store, laneKey)) === 0 && !(await deliver('ok'))) break;
    }
    const standing = [...shown].map(([message, on]) => [message, [...on]] as const);
    for (const [message, on] of standing)
      expect(on).toEqual(signs.has(message) && on.length > 0 ? [failedReaction] : []);
    for (const message of signs) expect([...(shown.get(message) ?? [])]).toEqual([failedReaction]);
    expect(await store.read(readMarksLeft, { laneKey, conversationKey })).toEqual([]);
  };

  return { take, end };
}

/** Makes what waits for its time due. */
const hurry = (conversationKey: string) =>
  `update outbox set "dueAt" = 0 where "conversationKey" = '${conversationKey}'`;

/** Ends the lease of a killed process. */
const release = (conversationKey: string) =>
  `update conversations set "deliveryUntil" = 0, "deliveryHolder" = null where "key" = '${conversationKey}'`;

const readMarksLeft: StoreQuery<
  { readonly laneKey: string; readonly conversationKey: string },
  readonly unknown[]
> = {
  query: 'readMarksLeft',
  run: async (tx, { laneKey, conversationKey }) => {
    const marks = await tx.db.selectFrom('marks').selectAll().where('laneKey', '=', laneKey).execute();
    const parts = await tx.db
      .selectFrom('outbox')
      .select(['key', 'state', 'content'])
      .where('conversationKey', '=', conversationKey)
      .where('key', 'like', '%:mark')
      .execute();
    return [...marks, ...parts];
  },
};

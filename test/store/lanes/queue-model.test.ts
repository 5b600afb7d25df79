import fc from 'fast-check';
import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import type { MessageId } from '../../../src/contracts/ids.ts';
import { type AgentMessage, type FinishReason, textOf } from '../../../src/contracts/message.ts';
import { dropPolicies, type QueueMode, queueModes } from '../../../src/contracts/queue-settings.ts';
import type { Store } from '../../../src/store/base/command.ts';
import type { Proposal } from '../../../src/store/intake/proposal.ts';
import { cancelItem, editItem, promoteItem } from '../../../src/store/items/change-item.ts';
import type { SteerDelivery } from '../../../src/store/items/choose-batch.ts';
import { readUnnotified, storeWaitingNotices } from '../../../src/store/items/waiting-notices.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { commitToolTurn, markToolStarted } from '../../../src/store/lanes/commit-turn.ts';
import { handOver, renewLeases } from '../../../src/store/lanes/leases.ts';
import { parkRun, settleParkedCall } from '../../../src/store/lanes/park-run.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { holds } from '../../support/holds.ts';
import { isLong } from '../../support/long-run.ts';
import {
  aCommand,
  aLane,
  aMessage,
  aRoute,
  aWorker,
  defaults,
  endWithout,
  framing,
  newCommand,
  unique,
} from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';
import { type Item, isGivenUp, QueueModel, type Who } from './queue-model.ts';

type Worker = 'boot-a' | 'boot-b';

const boss = { ref: 'test:boss', people: [], mayChangeAny: true, mayPromoteOwn: true };

const who = fc.constantFrom<Who>('ann', 'bob');
/** Undefined: the same message as before, for bugs that only several changes of one message reveal. */
const nth = fc.option(fc.nat({ max: 30 }), { nil: undefined });
const delivery = fc.constantFrom(
  'one-at-a-time' as const,
  'all' as const,
  'joined' as const,
  'none' as const,
);
const worker = fc.constantFrom<Worker>('boot-a', 'boot-b');

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('arrive' as const), who }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('edit' as const), nth }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), nth }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('cancel-item' as const, 'promote-item' as const, 'edit-item' as const),
      nth,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('mode' as const), mode: fc.constantFrom(...queueModes) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stop' as const), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('new' as const), who }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), worker }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('boundary' as const), delivery }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('answer' as const), delivery, mayKeepLane: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('tool-turn' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('abort' as const),
      reason: fc.constantFrom('error', 'timeout'),
      mayKeepLane: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('expire' as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('take-over' as const), worker }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('hand-over' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('park' as const), isAnswered: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('answer-call' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('tell-waiting' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('cap' as const),
      cap: fc.integer({ min: 1, max: 5 }),
      drop: fc.constantFrom(...dropPolicies),
    }),
  },
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const settings = fc.record({
  mode: fc.constantFrom<QueueMode>(...queueModes),
  cap: fc.integer({ min: 1, max: 5 }),
  drop: fc.constantFrom(...dropPolicies),
});

/** Limited by time, unless PARLEY_LONG=1 or a count is given; QUEUE_SEED replays the same sequences. */
const isCounted = isLong || process.env.QUEUE_SEQUENCES !== undefined;
const sequences = Number(process.env.QUEUE_SEQUENCES ?? 100_000);
const seed = Number(process.env.QUEUE_SEED ?? Date.now() % 1e9);
/** PostgreSQL is reached over a network and takes four times as long. */
const share = { sqlite: 0.8, postgres: 0.2 } as const;

describeEachDatabase('the queue', (open, { dialect }) => {
  it("matches the queue's reference model, and ends every message in one outcome", async () => {
    let played = 0;
    await holds(
      fc.asyncProperty(settings, fc.array(step, { maxLength: 40 }), async (chosen, steps) => {
        const pair = createPair(open(), chosen);
        for (const one of steps) await pair.take(one);
        await pair.settle();
        played += 1;
      }),
      isCounted
        ? { seed, numRuns: Math.ceil(sequences * share[dialect]) }
        : { seed, numRuns: 100_000, interruptAfterTimeLimit: 5_000 },
    );
    if (isCounted) console.info(`${dialect}: ${played} sequences of the queue as in its model, seed ${seed}`);
  }, 7_200_000);
});

/** The model and a real lane, which take the same steps and are compared after each. */
function createPair(
  store: Store,
  { mode, cap, drop }: { mode: QueueMode; cap: number; drop: 'summarize' | 'old' | 'new' },
) {
  const model = new QueueModel({ mode, cap, drop });
  const conversation = unique('c');
  const lane = aLane(conversation, { settings: { ...defaults, mode, cap, drop, quietMs: 0 } });
  const intake = aWorker(store);
  const workers = { 'boot-a': aWorker(store, 'boot-a'), 'boot-b': aWorker(store, 'boot-b') };
  const said: { readonly message: Proposal; readonly item: Item | undefined }[] = [];
  const runIds: string[] = [];
  /** The item that arrived or was changed last. */
  let latest: Item | undefined;
  /** Items whose senders know that they wait. */
  const informed = new Set<Item>();
  let run: (ClaimedRun & { readonly holder: Worker }) | undefined;
  let asked: { runId: string; callId: string; by: QueueModel['run']; isAnswered: boolean } | undefined;
  let count = 0;

  const accept = async (proposal: Proposal) => (await intake.accept(proposal)).acceptances[0];

  const arrive = async (from: Who) => {
    const text = `text ${++count}`;
    const authority = from === 'ann' ? 'owner' : 'guest';
    const message = aMessage({ conversation, text, sender: from, lane, item: { authority } });
    const item = model.arrive(from, text);
    said.push({ message, item });
    latest = item;
    expect((await accept(message))?.kind).toBe(item ? 'accepted' : 'refused');
  };

  const change = async (kind: 'edit' | 'delete', nth: number | undefined) => {
    const found = nth === undefined ? said.find(({ item }) => item === latest) : said[nth % said.length];
    if (!found) return;
    const { message, item } = found;
    latest = item;
    const text = `text ${++count}`;
    const newId = crypto.randomUUID();
    const edit = { kind: 'edit', text, prompt: text, note: 'edited', newId } as const;
    const route = aRoute(conversation);
    const removal = { kind: 'delete', note: 'deleted {message}', route } as const;
    const decision = kind === 'edit' ? edit : removal;
    const expected = item && (kind === 'edit' ? model.edit(item, text) : model.remove(item));
    const acceptance = await accept({ ...message, eventKey: unique(kind), kind, decision });
    expect(acceptance).toEqual(
      expected === undefined
        ? { kind: 'ignored', reason: 'unknown-message' }
        : { kind: 'noted', effect: expected },
    );
  };

  /** Changes an item by the number that people see, whatever it is: a message, a correction, a command. */
  const changeItem = async (kind: 'cancel-item' | 'promote-item' | 'edit-item', nth: number | undefined) => {
    const item = nth === undefined ? latest : model.items[nth % model.items.length];
    if (!item) return;
    latest = item;
    const number = (await readLane(store, lane.key)).inbox[model.items.indexOf(item)]?.seq ?? 0;
    const asked = { laneKey: lane.key, number, actor: boss };
    const text = `text ${++count}`;
    const newWords = { text, prompt: text, newId: crypto.randomUUID() };
    if (kind === 'edit-item' && item.kind === 'correction' && item.state !== 'waiting') return;
    const expected = expectChange(kind, item, text);
    const { changed } = await (kind === 'cancel-item'
      ? store.write(cancelItem, asked)
      : kind === 'promote-item'
        ? store.write(promoteItem, asked)
        : store.write(editItem, { ...asked, ...newWords }));
    expect([kind, changed.kind]).toEqual([kind, expected]);
  };

  const expectChange = (kind: 'cancel-item' | 'promote-item' | 'edit-item', item: Item, text: string) => {
    if (kind === 'promote-item') return model.promote(item);
    if (kind === 'edit-item') {
      if (item.kind === 'command') return 'kept';
      const effect = model.edit(item, text);
      return effect === 'replaced' ? 'done' : effect === 'steered' ? 'steered' : 'ended';
    }
    const effect = model.remove(item, `by ${boss.ref}`);
    return item.state === 'taken' ? 'working' : effect === 'cancelled' ? 'done' : 'ended';
  };

  const command = async (proposal: Proposal) => {
    await accept(proposal);
  };

  const newSession = async (from: Who) => {
    const message = aMessage({ conversation, text: '/new', sender: from, lane });
    if (message.decision.kind !== 'accept') return;
    const { item } = message.decision;
    const content = { ...item.content, command: newCommand };
    model.newSession(from);
    await accept({ ...message, decision: { kind: 'accept', item: { ...item, kind: 'command', content } } });
  };

  const claim = async (holder: Worker) => {
    const stale = run;
    const expected = model.claim(holder);
    const claimed = await workers[holder].claim(lane.key);
    expect(claimed.kind).toBe(expected);
    if (expected === 'busy' || expected === 'parked') return;
    if (stale) await isRefused(stale);
    run = claimed.kind === 'run' ? { ...claimed.run, holder } : undefined;
    if (run && !run.isResumed) runIds.push(run.runId);
  };

  /** Expects a write to be rejected if another worker has claimed the lane. */
  const isRefused = async (stale: ClaimedRun) => {
    await expect(workers['boot-a'].answer(stale, 'late')).rejects.toSatisfy((error) =>
      hasCode(error, 'stale_epoch'),
    );
  };

  const answer = async (order: SteerDelivery, mayKeepLane: boolean) => {
    if (!run) return;
    const expected = model.answer(order, mayKeepLane);
    const answered = await workers[run.holder].answer(run, 'ok', { delivery: order, mayKeepLane });
    const { steers, next, cancelReason, effects } = answered;
    if (expected === 'cancelled') {
      expect({ steers, next, cancelReason }).toEqual({ steers: [], cancelReason: model.run?.cancel });
      return expect(effects.deliveries).toEqual([]);
    }
    if (typeof expected !== 'string')
      return expect(textsOf(steers)).toEqual(expected.map((item) => item.text));
    expect(next?.kind).toBe(expected);
    run = undefined;
  };

  /** Answers the last call that waited for an outside result. */
  const answerCall = async () => {
    if (asked === undefined) return;
    const expected = model.run === asked.by && model.run?.cancel === undefined ? 'settled' : 'cancelled';
    const settled = await store.write(settleParkedCall, { ...asked, isError: false, parts: [] });
    const isClosed = asked.isAnswered || (asked.by && isGivenUp(asked.by));
    expect(settled.settlement).toBe(isClosed ? 'settled-before' : expected);
    if (settled.settlement !== 'settled') return;
    asked.isAnswered = true;
    if (model.lease?.is === 'parked') expect(settled.effects.wakes).toHaveLength(1);
    model.unpark();
  };

  const park = async (isAnswered: boolean) => {
    if (!run) return;
    const message = aTurn(run, 'tool_use');
    const [messageId, callId] = [message.id, unique('call')];
    const calls = [{ callId, name: 'ask', input: '{}' }];
    await store.write(commitToolTurn, { ...run, message, calls });
    await store.write(markToolStarted, { ...run, messageId, callId });
    asked = { runId: run.runId, callId, by: model.run, isAnswered: false };
    if (isAnswered) await answerCall();
    const expected = model.park(isAnswered);
    const parked = await store.write(parkRun, {
      ...run,
      reason: 'an answer',
      workedMs: 1,
      waitMs: 3_600_000,
    });
    expect(parked.kind).toBe(expected);
    await isRefused(run);
    run = undefined;
  };

  const abort = async (reason: string, mayKeepLane: boolean) => {
    if (!run) return;
    const cancel = model.run?.cancel;
    const [outcome, outcomeReason] =
      cancel === undefined ? (['failed', reason] as const) : (['cancelled', cancel] as const);
    const expected = model.close(outcome, outcomeReason, mayKeepLane);
    // Aborted, or finished but never sent: it consumes no message.
    const message = aTurn(run, cancel === undefined ? 'error' : 'end_turn');
    const { next } = await endWithout(store, run, outcomeReason, { message, outcome, mayKeepLane });
    expect(next.kind).toBe(expected);
    run = undefined;
  };

  /** Notifies each sender of a waiting message, once. */
  const wakeOthers = async () => {
    const expected = model.waiting().filter((item) => item.kind === 'message' && !informed.has(item));
    for (const item of expected) informed.add(item);
    const untold = (await store.read(readUnnotified, { afterMs: -60_000 })).filter(
      ({ laneKey }) => laneKey === lane.key,
    );
    const notices = untold.map((item) => {
      const messageId = item.messageId as MessageId | undefined;
      return { ...item, content: messageId && ({ kind: 'reaction', messageId, emoji: '👀' } as const) };
    });
    const { deliveries } = await store.write(storeWaitingNotices, { notices });
    expect(deliveries).toHaveLength(expected.length);
  };

  const take = async (one: Step): Promise<void> => {
    switch (one.kind) {
      case 'tell-waiting':
        return wakeOthers();
      case 'arrive':
        return arrive(one.who);
      case 'edit':
      case 'delete':
        return change(one.kind, one.nth);
      case 'cancel-item':
      case 'promote-item':
      case 'edit-item':
        return changeItem(one.kind, one.nth);
      case 'mode':
        model.settings = { ...model.settings, mode: one.mode };
        return command(aCommand(conversation, { kind: 'queue', change: { mode: one.mode } }, 'ann', lane));
      case 'stop':
        model.stop(one.who);
        return command(
          aCommand(conversation, { kind: 'stop', isPrivileged: false, isAll: false }, one.who, lane),
        );
      case 'new':
        return newSession(one.who);
      case 'claim':
        return claim(one.worker);
      case 'boundary': {
        if (!run) return;
        const expected = model.boundary(one.delivery).map((item) => item.text);
        const { steers } = await store.write(takeSteers, { ...run, framing, delivery: one.delivery });
        return expect(textsOf(steers)).toEqual(expected);
      }
      case 'answer':
        return answer(one.delivery, one.mayKeepLane);
      case 'tool-turn': {
        if (!run) return;
        model.toolTurn();
        const message = aTurn(run, 'tool_use');
        return store.write(commitToolTurn, { ...run, message, calls: [] });
      }
      case 'abort':
        return abort(one.reason, one.mayKeepLane);
      case 'cap':
        model.settings = { ...model.settings, cap: one.cap, drop: one.drop };
        return command(
          aCommand(conversation, { kind: 'queue', change: { cap: one.cap, drop: one.drop } }, 'ann', lane),
        );
      case 'park':
        return park(one.isAnswered);
      case 'answer-call':
        return answerCall();
      case 'hand-over':
        model.handOver();
        return run && store.write(handOver, run);
      case 'take-over':
        await take({ kind: 'expire' });
        return claim(one.worker);
      case 'expire':
        model.expire();
        if (run) await store.write(renewLeases, { holder: run.holder, leaseMs: -1, runs: [run] });
        return;
      default:
        return one satisfies never;
    }
  };

  /** Brings the lane to rest and compares the outcomes of everything. */
  const settle = async () => {
    while (run || model.run || model.waiting().length > 0) {
      if (model.lease?.is === 'parked') await answerCall();
      if (run)
        await (model.run?.cancel === undefined ? answer('one-at-a-time', false) : abort('error', false));
      else await claim('boot-a');
      if (!run && model.waiting().length > 0) await claim('boot-b');
    }
    const facts = await readLane(store, lane.key);
    expect(facts.openRuns).toBe(0);
    expect(facts.inbox.map(({ state, outcome, reason }) => [state, outcome, reason])).toEqual(
      model.items.map(({ state, outcome, reason }) => [state, outcome, reason]),
    );
    const told = runIds.flatMap((id) => facts.told.filter((message) => message.runId === id));
    expect(told.map(({ role, text }) => (role === 'user' ? plain(text) : summary(text)))).toEqual(
      model.told.map(({ text }) => text),
    );
  };

  return { take, settle };
}

function aTurn({ sessionId }: ClaimedRun, reason: FinishReason) {
  const finish = { type: 'finish', data: { reason, time: 1 } } as const;
  return { id: crypto.randomUUID(), sessionId, model: 'test', parts: [finish] };
}

function textsOf(messages: readonly AgentMessage[]): readonly string[] {
  return messages.filter((message) => message.role === 'user').map((message) => plain(textOf(message.parts)));
}

function plain(text: string): string {
  return text.replace('(Correction of an earlier message.) ', '');
}

function summary(text: string): string {
  return `summary of ${text.split('\n').length - 2}`;
}

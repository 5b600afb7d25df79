import fc from 'fast-check';
import { expect, it } from 'vitest';
import { expireQuestion } from '../../src/store/access/decide-approval.ts';
import { readGrants, revokeGrant } from '../../src/store/approvals/grant.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { callsTools, says } from '../agent/support/scripted-model.ts';
import { unique } from '../store/builders.ts';
import { type Beside, describeEachDatabase, type OpenStore } from '../store/each-database.ts';
import { aFamilyWorker } from '../store/family.ts';
import { isLong } from '../support/long-run.ts';
import { ann, eve, openAsking, owner } from './asking-run.ts';

const verdict = fc.constantFrom('approve' as const, 'always' as const, 'deny' as const);
const by = fc.constantFrom(ann, eve, owner);
/** Calls of a small world, so that a grant for one of them is worth something. */
const calls = fc.array(
  fc.record({ name: fc.constantFrom('act', 'beside', 'free'), of: fc.constantFrom('a', 'b') }),
  { maxLength: 3 },
);

/** `depth`: 0 is the person's conversation, 1 and 2 are sub-agents below it. */
const depth = fc.nat(2);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('play' as const), depth, calls }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('press' as const),
      which: fc.nat(7),
      presses: fc.array(fc.record({ verdict, by }), { minLength: 1, maxLength: 3 }),
    }),
  },
  fc.record({ kind: fc.constant('expire' as const), depth, isSwept: fc.boolean() }),
  fc.record({ kind: fc.constant('revoke' as const), which: fc.nat(3) }),
  fc.record({
    kind: fc.constant('rights' as const),
    present: fc.constantFrom('guest' as const, 'member' as const),
  }),
  fc.record({ kind: fc.constantFrom('stop' as const, 'say' as const) }),
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type StepOf<Kind extends Step['kind']> = Extract<Step, { readonly kind: Kind }>;

/** Opens a conversation whose agent waits for a sub-agent, which waits for another one. */
async function aTree(open: OpenStore) {
  const run = openAsking(open());
  const family = aFamilyWorker(open());
  await run.say('go');
  const lanes = [run.laneKey];
  for (let above = await family.claimRun(run.laneKey); lanes.length < 3; ) {
    const child = await family.spawnOne(above, { mode: 'wait' });
    lanes.push(child.laneKey);
    await family.park(above);
    if (lanes.length < 3) above = await family.claimRun(child.laneKey);
  }
  return { ...run, lanes };
}

/** Plays steps in such a tree, and notes what must not happen. */
async function aWorld(open: OpenStore, sql: Beside['sql']) {
  const run = await aTree(open);
  const asked = new Map<string, string>();
  const made = new Map<string, string>();
  const approved = new Set<string>();
  const decided: string[] = [];
  const granted = new Map<string, string>();
  const breaches: string[] = [];
  const laneAt = (depth: number) => run.lanes[depth] ?? run.laneKey;
  run.onCall((callId) => {
    const what = made.get(callId) ?? 'none';
    if (what.startsWith('free') || [...granted.values()].includes(what)) return;
    if (!approved.has(callId)) breaches.push(`${callId} ran without an approval`);
    if (run.now.present === 'guest') breaches.push(`${callId} ran without the right`);
  });

  const note = async () => {
    for (const lane of run.lanes)
      for (const { id, callId } of await run.questionsIn(lane)) asked.set(id, callId);
  };
  const play = async ({ depth, calls }: StepOf<'play'>) => {
    const batch = calls.map(({ name, of }) => {
      const id = unique('call');
      made.set(id, `${name} ${of}`);
      return { id, name, input: { of } };
    });
    const first = batch.length > 0 ? callsTools(...batch) : says('done');
    // The lane may have nothing to do, or wait.
    await run.playIn(laneAt(depth), first, says('done')).catch(() => undefined);
  };
  const press = async ({ which, presses }: StepOf<'press'>) => {
    const id = [...asked.keys()][which % Math.max(1, asked.size)];
    if (id === undefined) return;
    const callId = asked.get(id) ?? '';
    const answers = await Promise.all(presses.map(({ verdict, by }) => run.press(id, verdict, by)));
    for (const [index, { kind }] of answers.entries()) {
      if (kind !== 'approved' && kind !== 'denied') continue;
      decided.push(id);
      if (presses[index]?.by === eve) breaches.push(`${id} was decided by a stranger`);
      if (kind === 'approved') approved.add(callId);
      if (presses[index]?.verdict === 'always') granted.set(id, made.get(callId) ?? '');
    }
  };
  const expire = async ({ depth, isSwept }: StepOf<'expire'>) => {
    const lane = laneAt(depth);
    const due = await run.questionsIn(lane);
    if (due.length === 0) return;
    const isOpen = `"state" = 'open' and "laneKey" = '${lane}'`;
    await sql(`update "callApprovals" set "expiresAt" = 1 where ${isOpen}`);
    await sql(`update "lanes" set "leaseUntil" = 1 where "key" = '${lane}' and "holder" is null`);
    // Otherwise the next claim notices.
    if (isSwept) for (const { id } of due) await open().write(expireQuestion, { id });
  };
  const revoke = async ({ which }: StepOf<'revoke'>) => {
    const grants = await open().read(readGrants, { laneKey: run.laneKey });
    const { id } = grants[which % Math.max(1, grants.length)] ?? {};
    if (id === undefined) return;
    await open().write(revokeGrant, { id, by: 'console' });
    granted.delete(id);
  };

  const act = async (each: Step): Promise<unknown> => {
    await note();
    switch (each.kind) {
      case 'play':
        return play(each);
      case 'press':
        return press(each);
      case 'expire':
        return expire(each);
      case 'revoke':
        return revoke(each);
      case 'rights':
        run.now.present = each.present;
        return undefined;
      case 'stop':
        return run.rest.command({ kind: 'stop', isPrivileged: true, isAll: true });
      case 'say':
        return run.say('and this');
      default:
        return each satisfies never;
    }
  };
  return { act, breaches, decided, ran: run.ran, lanes: run.lanes };
}

/** Reads the ids of open questions for which no run waits. */
const readLost: StoreQuery<readonly string[], readonly string[]> = {
  query: 'readLost',
  run: async (tx, lanes) => {
    const rows = await tx.db
      .selectFrom('callApprovals')
      .innerJoin('runs', 'runs.id', 'callApprovals.runId')
      .select('callApprovals.id')
      .where('callApprovals.state', '=', 'open')
      .where('callApprovals.laneKey', 'in', [...lanes])
      .where('runs.state', '<>', 'parked')
      .execute();
    return rows.map(({ id }) => id);
  },
};

describeEachDatabase('calls that need an approval, at random', (open, { sql }) => {
  it('runs a call at most once, only if it was approved or granted, at any depth, whatever is pressed and killed', async () => {
    let ran = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 16 }), async (steps) => {
        const world = await aWorld(open, sql);
        for (const each of steps) await world.act(each);
        ran += world.ran.length;
        expect(world.breaches).toEqual([]);
        expect(new Set(world.ran).size).toBe(world.ran.length);
        expect(new Set(world.decided).size).toBe(world.decided.length);
        expect(await open().read(readLost, world.lanes)).toEqual([]);
      }),
      { numRuns: isLong ? 2_000 : 10 },
    );
    // Ten sequences may happen to approve nothing.
    if (isLong) expect(ran).toBeGreaterThan(0);
  });
});

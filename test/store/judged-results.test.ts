/** Results that steps word themselves, on a store whose process has a hook `tool_result_persist`. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { HookEvents } from '../../src/contracts/hook.ts';
import { neverStarted, unknownOutcome, waitExpired } from '../../src/contracts/message.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { persistHookOf } from '../../src/runs/run-hooks.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { commitToolTurn, markToolStarted } from '../../src/store/lanes/commit-turn.ts';
import { parkRun } from '../../src/store/lanes/park-run.ts';
import { silentLog } from '../support/silent-log.ts';
import { unique } from './builders.ts';
import { describeEachDatabase } from './each-database.ts';
import { aFamilyWorker, fenceOf } from './family.ts';

type Seen = HookEvents['tool_result_persist'];

/** Everything that the database has about the results of a run's calls. */
const readResults: StoreQuery<
  ClaimedRun,
  readonly { readonly result: string | null; readonly isError: number | null }[]
> = {
  query: 'testJudgedResults',
  run: async (tx, { runId, sessionId }) => {
    const calls = await tx.db
      .selectFrom('toolCalls')
      .select(['result', 'isError'])
      .where('runId', '=', runId)
      .orderBy('ordinal')
      .execute();
    const rows = await tx.db
      .selectFrom('transcript')
      .select(['parts', 'position'])
      .where('sessionId', '=', sessionId)
      .where('role', '=', 'tool')
      .orderBy('position')
      .execute();
    return [...calls, ...rows.map(({ parts }) => ({ result: parts, isError: null }))];
  },
};

describeEachDatabase('a result that a step words', (_, beside) => {
  const hooks = createHooks({ log: silentLog, clock: systemClock });
  let seen: Seen[] = [];
  let handler = (_: Seen): unknown => undefined;
  let store: Store;
  beforeAll(async () => {
    hooks.on('tool_result_persist', (event) => handler(event) as undefined, { owner: 'test' });
    store = await beside.open({ persistHook: () => persistHookOf(hooks) });
  });
  afterAll(() => store.close());
  beforeEach(() => {
    seen = [];
    handler = (event) => {
      seen.push(event);
      return { kind: 'rewrite', text: event.result.text.replaceAll('1234', '****') };
    };
  });

  /** A run whose turn has these calls, of which the first has started. */
  const aTurn = async (...callIds: readonly string[]) => {
    const worker = aFamilyWorker(store);
    const { run, lane } = await worker.begin();
    const calls = callIds.map((callId) => ({ callId, name: 'act', input: '{}' }));
    const message = { id: unique('turn'), sessionId: run.sessionId, model: 'test', parts: [] };
    await store.write(commitToolTurn, { ...fenceOf(run), message, calls });
    await store.write(markToolStarted, { ...fenceOf(run), messageId: message.id, callId: callIds[0] ?? '' });
    return { worker, run, lane };
  };
  const resultsOf = async (run: ClaimedRun) => {
    const rows = await store.read(readResults, run);
    return { text: rows.map(({ result }) => result).join('\n'), isError: rows[0]?.isError };
  };
  /** A run that waits for a sub-agent, which answers this. */
  const awaiting = async (answer: string) => {
    const worker = aFamilyWorker(store);
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run, { callId: 'c1', mode: 'wait' });
    await worker.park(run);
    const { effects } = await worker.answer(await worker.claimRun(child.laneKey), answer);
    return { run, child, effects };
  };

  it('stores the result of an awaited sub-agent only as the hook has left it', async () => {
    const { run, child, effects } = await awaiting('the token is 1234');
    const call = { id: 'c1', name: 'sessions_spawn' };
    expect(seen).toMatchObject([{ runId: run.runId, call, source: 'child', result: { isError: false } }]);
    expect(seen[0]?.result.text).toContain('the token is 1234');
    const { text, isError } = await resultsOf(run);
    expect(text).toContain('the token is ****');
    expect(text).not.toContain('1234');
    expect(isError).toBe(0);
    expect(effects).toMatchObject({ endedChildren: [child.id], wakes: [{ laneKey: run.laneKey }] });
  });

  it('stores nothing of an awaited sub-agent’s result if the hook fails', async () => {
    handler = () => {
      throw new Error('no');
    };
    const { run, effects } = await awaiting('the token is 1234');
    const { text, isError } = await resultsOf(run);
    expect(text).toContain('the result is withheld');
    expect(text).not.toContain('1234');
    expect(isError).toBe(1);
    expect(effects.wakes).toMatchObject([{ laneKey: run.laneKey }]);
  });

  it('shows the hook a call whose wait is over', async () => {
    const { worker, run, lane } = await aTurn('1');
    await store.write(parkRun, { ...fenceOf(run), reason: 'an answer', workedMs: 1, waitMs: 0 });
    await worker.claimRun(lane.key);
    expect(seen).toMatchObject([{ call: { id: '1' }, source: 'tool', result: { text: waitExpired } }]);
  });

  it('shows the hook each open call of a run that was given up', async () => {
    const { worker, run, lane } = await aTurn('1', '2');
    await beside.sql(`update "runs" set "attempts" = 3 where "id" = '${run.runId}'`);
    await beside.sql(`update "lanes" set "leaseUntil" = 1 where "key" = '${lane.key}'`);
    expect((await worker.claim(lane.key)).kind).toBe('again');
    const shown = new Map(seen.map(({ call, result }) => [call.id, result.text]));
    expect([...shown].toSorted()).toEqual([
      ['1', unknownOutcome],
      ['2', neverStarted],
    ]);
  });
});

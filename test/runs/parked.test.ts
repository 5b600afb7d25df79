import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import { type FeedEvent, isForClients } from '../../src/contracts/feed.ts';
import type { CallRef, SettleCall, Tool } from '../../src/contracts/tool.ts';
import { createHooks, type Hooks } from '../../src/hooks/hooks.ts';
import { createLaneDriver } from '../../src/runs/drive-lane.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import { createSettleCall } from '../../src/runs/park.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { aTool } from '../agent/support/builders.ts';
import { manualClock } from '../agent/support/manual-clock.ts';
import { callsTools, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { until } from '../e2e/until.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aCommand, aMessage, demoOnly, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

describe('a run whose call waits for an outside answer', () => {
  const store = openOwnStore();

  /** Opens one lane with one message, a process that works it, and a tool `ask` that parks the run. */
  const open = async (
    plays: readonly Play[],
    {
      clock = systemClock,
      before = async (_: CallRef) => {},
      faulty = false,
      wait = {} as { readonly waitMs?: number },
    } = {},
  ) => {
    const { conversation, laneKey, worker, say } = aConversation(store());
    const holder = unique('boot');
    const asked: CallRef[] = [];
    const ran: string[] = [];
    const events: string[] = [];
    const ask = aTool('ask', {
      replay: 'durable',
      execute: async (_, { callId, run: { runId } }) => {
        asked.push({ runId, callId });
        await before({ runId, callId });
        return { parked: { reason: 'an approval', ...wait } };
      },
    });
    const act = aTool('act', { execute: async () => ({ text: `acted ${ran.push('act')}` }) });
    const tools: readonly Tool[] = [ask, act];
    const model = scriptedModel(...plays);
    const active = someActiveRuns(store(), holder);
    const deps = {
      ...runDeps(faulty ? failsOnceToPark(store()) : store(), { active, model, tools }),
      clock,
      feed: {
        isFollowed: () => false,
        onTextRequest: () => undefined,
        publish: (_: string, event: FeedEvent) => {
          if (isForClients(event)) events.push('state' in event ? event.state : event.kind);
        },
      },
    };
    const driver = createLaneDriver({
      ...deps,
      holder,
      wakes: { wake: () => undefined, close: async () => undefined },
      leaseMs: faulty ? 100 : 10_000,
      maxAttempts: 3,
      redact: (text) => text,
      turnModels: demoOnly,
      maxRuns: 5,
      maxHoldMs: 60_000,
      execute: (run, options) => executeRun(deps, run, options),
    });
    await say('go');
    const settle = createSettleCall({ ...deps, log: silentLog });
    return {
      conversation,
      laneKey,
      worker,
      asked,
      ran,
      events,
      model,
      settle,
      settleWith: (hooks: Hooks) => createSettleCall({ ...deps, log: silentLog, hooks }),
      drive: () => driver.drive(laneKey, new AbortController().signal),
      answer: (text: string) => settle(asked[0] ?? { runId: '' as never, callId: '' }, { text }),
      outcomes: async () => (await readLane(store(), laneKey)).inbox.map(({ outcome }) => outcome),
      shown: () => JSON.stringify(model.requests.at(-1)?.messages),
      close: () => active.close(),
    };
  };

  const askAndAct = callsTools({ id: '1', name: 'ask' }, { id: '2', name: 'act' });

  it('frees its worker while parked, and runs the later calls once the call is settled', async () => {
    const run = await open([askAndAct, says('done')]);
    await run.drive();
    expect(run.events).toEqual(['started', 'started', 'parked', 'changed']);
    expect([run.ran, await run.outcomes()]).toEqual([[], [null]]);
    await run.drive();
    expect(run.model.requests).toHaveLength(1);

    expect(await run.answer('approved by Ada')).toBe('settled');
    expect(await run.answer('approved twice')).toBe('settled-before');
    await run.drive();
    expect(run.asked).toHaveLength(1);
    expect(run.ran).toEqual(['act']);
    expect(run.shown()).toContain('approved by Ada');
    expect(run.shown()).toContain('acted 1');
    expect(await run.outcomes()).toEqual(['answered']);
    await run.close();
  });

  it('shows an outside answer as tool_result_persist has left it', async () => {
    const run = await open([askAndAct, says('done')]);
    await run.drive();
    const hooks = createHooks({ log: silentLog, clock: systemClock });
    hooks.on('tool_result_persist', ({ source }) => ({ kind: 'rewrite', text: `*** from ${source}` }), {
      owner: 'test',
    });
    await run.settleWith(hooks)(run.asked[0] as CallRef, { text: 'approved by Ada' });
    await run.drive();
    expect(run.shown()).toContain('*** from settled');
    expect(run.shown()).not.toContain('Ada');
    await run.close();
  });

  it.each([
    ['a week', {}, 604_800_000],
    ['as long as its tool says', { waitMs: 900_000 }, 900_000],
    ['30 days at most', { waitMs: Number.MAX_SAFE_INTEGER }, 2_592_000_000],
    ['a week if its tool names no time', { waitMs: Number.NaN }, 604_800_000],
  ])('parks a run for %s', async (_, wait, ms) => {
    const run = await open([askAndAct, says('done')], { wait });
    await run.drive();
    expect(await store().read(readWaitMs, run.laneKey)).toBe(ms);
    await run.close();
  });

  it('skips the later calls and reads the new message if one arrived meanwhile', async () => {
    const run = await open([askAndAct, says('done')]);
    await run.drive();
    await run.worker.accept(aMessage({ conversation: run.conversation, text: 'never mind' }));
    await run.answer('approved');
    await run.drive();
    expect(run.ran).toEqual([]);
    expect(run.shown()).toContain('never mind');
    expect(run.shown()).toContain('skipped: a new message arrived');
    expect(await run.outcomes()).toEqual(['answered', 'answered']);
    await run.close();
  });

  it('continues at once if the answer came before the run was parked', async () => {
    let settle: SettleCall | undefined;
    const before = async (call: CallRef) => void (await settle?.(call, { text: 'approved early' }));
    const run = await open([askAndAct, says('done')], { before });
    settle = run.settle;
    await run.drive();
    expect([run.asked.length, run.ran]).toEqual([1, ['act']]);
    expect(run.shown()).toContain('approved early');
    expect(await run.outcomes()).toEqual(['answered']);
    await run.close();
  });

  it('answers open calls "cancelled by user" when the run is stopped, without asking the model', async () => {
    const run = await open([askAndAct, says('done')]);
    await run.drive();
    const stop = { kind: 'stop', isPrivileged: true, isAll: false } as const;
    await run.worker.accept(aCommand(run.conversation, stop));
    expect(await run.answer('approved')).toBe('cancelled');
    await run.drive();
    expect([run.ran, run.model.requests.length]).toEqual([[], 1]);
    expect(await run.outcomes()).toEqual(['cancelled']);
    expect(await resultsOf(store(), run.asked[0]?.runId ?? '')).toEqual([
      'cancelled by user; it had started, outcome unknown',
      'cancelled by user',
    ]);
    await run.close();
  });

  it('repeats the same call after a crash and parks again', async () => {
    const run = await open([callsTools({ id: '1', name: 'ask' }), says('done')], { faulty: true });
    await run.drive();
    expect(run.events).not.toContain('parked');
    await until(
      async () => {
        await run.drive();
        return run.events.includes('parked');
      },
      { what: 'it is parked' },
    );
    expect(run.asked[1]).toEqual(run.asked[0]);
    await run.answer('approved');
    await run.drive();
    expect(run.asked).toHaveLength(2);
    expect(run.shown()).toContain('approved');
    expect(await run.outcomes()).toEqual(['answered']);
    await run.close();
  });

  it.each([
    ['waited for an hour', 0, 'answered'],
    ['worked up to its limit', 4_000, 'failed'],
  ])('counts only working time of a run that %s', async (_, worksMs, outcome) => {
    const clock = manualClock();
    const goesOn: Play = async function* () {
      clock.advance(worksMs);
      yield* says('done');
    };
    // The limit is 10 s, for both attempts together.
    const before = async () => clock.advance(7_000);
    const run = await open([callsTools({ id: '1', name: 'ask' }), goesOn], { clock, before });
    await run.drive();
    clock.advance(3_600_000);
    await run.answer('approved');
    await run.drive();
    expect(await run.outcomes()).toEqual([outcome]);
    await run.close();
  });
});

/** Behaves as if the process had died between the tool and the step that parks its run. */
function failsOnceToPark(store: Store): Store {
  let isFirst = true;
  return {
    ...store,
    write: async (command, input) => {
      if (command.name !== 'parkRun' || !isFirst) return store.write(command, input);
      isFirst = false;
      throw new ParleyError('store_unavailable', 'it is gone');
    },
  };
}

async function resultsOf(store: Store, id: string): Promise<readonly string[]> {
  const rows = await store.read(
    {
      query: 'resultsOf',
      run: (tx, runId: string) =>
        tx.db
          .selectFrom('toolCalls')
          .select('result')
          .where('runId', '=', runId)
          .orderBy('ordinal')
          .execute(),
    },
    id,
  );
  return rows.map(({ result }) => JSON.parse(result ?? '[]')[0]?.data.content);
}

/** Reads the time from the parking of the lane's run to the end of its lease, ms. */
const readWaitMs: StoreQuery<string, number> = {
  query: 'readWaitMs',
  run: async (tx, key) => {
    const row = await tx.db
      .selectFrom('lanes')
      .innerJoin('runs', 'runs.id', 'lanes.runId')
      .select(['lanes.leaseUntil', 'runs.parkedAt'])
      .where('lanes.key', '=', key)
      .executeTakeFirstOrThrow();
    return row.leaseUntil - (row.parkedAt ?? 0);
  },
};

/**
 * Compares the ledger with what the local server counted, whatever goes wrong with the model, whoever stops a run or
 * its sub-agents, and wherever the process dies.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { hasCode } from '../../src/contracts/errors.ts';
import type { AgentId } from '../../src/contracts/ids.ts';
import type { Usage } from '../../src/contracts/model.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { createBudgetRules } from '../../src/models/budget-rules.ts';
import { ratesOf } from '../../src/models/call-bound.ts';
import { metered } from '../../src/models/metering.ts';
import type { Models } from '../../src/models/models.ts';
import { costOf, lookUpPrices } from '../../src/models/prices.ts';
import { withRetry } from '../../src/models/retry.ts';
import type { ActiveRuns } from '../../src/runs/active-runs.ts';
import { createRunBudgets } from '../../src/runs/call-ledger.ts';
import { executeRun, type RunDeps } from '../../src/runs/execute-run.ts';
import { identityLinksFrom } from '../../src/sessions/identities.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { claimLane } from '../../src/store/lanes/claim-lane.ts';
import { addProcess } from '../../src/store/processes/process-records.ts';
import { readSessions } from '../../src/store/reads/read-sessions.ts';
import { createSpawnTool } from '../../src/subagents/spawn-tool.ts';
import { aTool } from '../agent/support/builders.ts';
import { scriptedModel } from '../agent/support/scripted-model.ts';
import { aPatientClock } from '../models/builders.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { aLane, aMessage, aWorker, framing, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { limits as spawnLimits } from '../store/family.ts';
import { readSums, sumUp } from '../store/usage-sums.ts';
import { holds } from '../support/holds.ts';
import { isLong } from '../support/long-run.ts';
import { cutPower } from '../support/power-cut.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

/** PROOF_CASES: the number of cases on SQLite; PostgreSQL runs a fraction of them. */
const cases = Number(process.env.PROOF_CASES ?? (isLong ? 2_000 : 6));
const parts = { sqlite: 1, postgres: isLong ? 0.25 : 1 / 3 } as const;
const [first, fallback] = ['claude-sonnet-5-5', 'claude-haiku-4-5'] as const;

/** What happens at one request. */
type Step =
  | 'answers'
  | 'acts'
  /** Starts a sub-agent that announces its end, or one whose end is the call's result. */
  | 'spawns'
  | 'delegates'
  | 'is refused'
  | 'disconnects'
  | 'breaks'
  | 'ends early'
  | 'errs'
  | 'stopped'
  | 'handed over';
/** Chosen so that most of them let the run continue. */
const steps: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.constantFrom<Step>('acts', 'is refused', 'disconnects'), weight: 3 },
  { arbitrary: fc.constantFrom<Step>('spawns', 'delegates'), weight: 2 },
  fc.constantFrom<Step>('answers', 'breaks', 'ends early', 'errs', 'stopped', 'handed over'),
);

/** Those that the model answers completely. */
const answered: ReadonlySet<Step> = new Set<Step>(['answers', 'acts', 'spawns', 'delegates']);

const aCase = fc.record({
  script: fc.array(steps, { minLength: 1, maxLength: 8 }),
  /** The write at which the process dies, if it gets that far. */
  cut: fc.option(fc.record({ write: fc.integer({ min: 2, max: 20 }), isCommitted: fc.boolean() })),
  hasBudget: fc.boolean(),
});

describeEachDatabase('the ledger of a run and its sub-agents', (open, { dialect }) => {
  let server: AnthropicServer;
  beforeAll(async () => {
    server = await startAnthropicServer();
  });
  afterAll(() => server.close());

  it('counts each call as the server did, or at a higher bound, and ends without reservations', {
    // The full count takes an hour on a busy machine.
    timeout: 7_200_000,
  }, async () => {
    await holds(
      fc.asyncProperty(aCase, async ({ script, cut, hasBudget }) => {
        const play = playOf(script);
        server.script((body) => play.next(String(body.model)));
        const scene: Scene = {
          ...{ conversation: unique('c'), folder: unique('folder'), play, hasBudget },
          url: server.url,
        };
        await aWorker(open()).accept(aMessage({ conversation: scene.conversation, text: 'go' }));
        if (cut) await workUntilEnd(cutPower(open(), cut), scene).catch(() => undefined);
        // A database that ends a slow machine's transaction interrupts a run just as a crash does.
        for (let isOver = false; !isOver; )
          isOver = await workUntilEnd(open(), scene).then(() => true, unlessUnavailable);
        const laneKeys = await open().read(readLanes, { laneKey: aLane(scene.conversation).key });
        await judgeSums(open(), laneKeys);
        judge(
          await open().read(readLedger, { laneKey: aLane(scene.conversation).key }),
          play.counted,
          hasBudget,
        );
      }),
      { numRuns: Math.ceil(cases * parts[dialect]) },
    );
  });
});

/** Tokens that the server counted for a request; `isWhole`: its answer reported them. */
type Counted = { readonly model: string; readonly usage: Usage; readonly isWhole: boolean };

type Play = {
  readonly counted: readonly Counted[];
  next(model: string): Reply;
  /** The process that works the lane now. */
  worker: { stop(): void; handOver(): void };
};

function playOf(script: readonly Step[]): Play {
  const counted: Counted[] = [];
  const left = [...script];
  const play: Play = {
    counted,
    worker: { stop: () => undefined, handOver: () => undefined },
    next: (model) => {
      const step = left.shift() ?? 'answers';
      if (step === 'is refused') return { status: 529 };
      const [input_tokens, output_tokens] = [100 + counted.length, 7 + left.length];
      const usage = {
        inputTokens: input_tokens,
        outputTokens: output_tokens,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
      };
      counted.push({ model, usage, isWhole: answered.has(step) });
      const zero = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
      const turn = { chunks: ['some ', 'words'], usage: { input_tokens, output_tokens, ...zero } };
      if (step === 'stopped') play.worker.stop();
      if (step === 'handed over') play.worker.handOver();
      switch (step) {
        case 'answers':
          return turn;
        case 'acts':
          return { ...turn, toolCalls: [{ name: 'act', input: { n: counted.length } }] };
        case 'spawns':
        case 'delegates': {
          const input = { task: `part ${counted.length}`, wait: step === 'delegates' };
          return { ...turn, toolCalls: [{ name: 'sessions_spawn', input }] };
        }
        case 'disconnects':
          return { disconnect: true };
        case 'breaks':
          return { ...turn, cutAfter: 1 };
        case 'ends early':
          return { ...turn, endAfter: 2 };
        case 'errs':
          return { ...turn, midStreamError: 'overloaded_error' };
        case 'stopped':
        case 'handed over':
          return { ...turn, silentAfter: 1 };
        default:
          return step satisfies never;
      }
    },
  };
  return play;
}

type Scene = {
  readonly conversation: string;
  readonly folder: string;
  readonly play: Play;
  readonly hasBudget: boolean;
  readonly url: string;
};

/** Plays a process that starts, works the conversation and its sub-agents until they rest, and may die meanwhile. */
async function workUntilEnd(store: Store, scene: Scene): Promise<void> {
  const boot = { id: unique('boot'), folder: scene.folder };
  await store.write(addProcess, boot);
  const active = someActiveRuns(store, boot.id);
  const laneKey = aLane(scene.conversation).key;
  try {
    for (let isAtRest = false; !isAtRest; ) {
      isAtRest = true;
      for (const each of await store.read(readLanes, { laneKey }))
        if (await workLane(store, scene, { active, holder: boot.id, laneKey: each })) isAtRest = false;
    }
  } finally {
    await active.close();
  }
}

function unlessUnavailable(error: unknown): false {
  if (hasCode(error, 'store_unavailable')) return false;
  throw error;
}

/** Reads the conversation's lane and those of its sub-agents. */
const readLanes: StoreQuery<{ readonly laneKey: string }, readonly string[]> = {
  query: 'readLanes',
  run: async (tx, { laneKey }) => {
    const lanes = tx.db.selectFrom('lanes').select('key').orderBy('key');
    const all = await lanes
      .where((eb) => eb.or([eb('key', '=', laneKey), eb('key', 'like', `%@${laneKey}`)]))
      .execute();
    return all.map(({ key }) => key);
  },
};

type LaneWork = { readonly active: ActiveRuns; readonly holder: string; readonly laneKey: string };

/** Works a lane until it is idle or its run waits for a sub-agent. Returns whether there was a run. */
async function workLane(store: Store, scene: Scene, { active, holder, laneKey }: LaneWork): Promise<boolean> {
  const models = modelsAt(scene.url);
  const rates = ratesOf(models);
  const deps = { ...depsOf(store, scene, active), models, rates };
  const uncounted = deps.budgets?.uncounted;
  for (let hasRun = false; ; ) {
    const claim = await store.write(claimLane, {
      ...{ laneKey, holder, leaseMs: 10_000, framing, maxAttempts: 9, rates, uncounted },
      ...{ newRunId: crypto.randomUUID(), models: { byAgent: {}, byDefault: first } },
    });
    if (claim.kind === 'idle' || claim.kind === 'parked') return hasRun;
    if (claim.kind === 'again') continue;
    if (claim.kind !== 'run') throw new Error(`the lane is ${claim.kind}`);
    hasRun = true;
    const leaving = new AbortController();
    const { runId } = claim.run;
    scene.play.worker = { stop: () => active.cancel(runId, 'stop'), handOver: () => leaving.abort() };
    await executeRun(deps, claim.run, {
      ...{ signal: leaving.signal, mayKeepLane: () => false, claims: () => undefined },
    });
  }
}

/** Large enough for every case, micro-dollars. */
const limit = 1e9;
const agents = [
  {
    ...{ id: 'main' as AgentId, name: 'main', workspace: '/nowhere' },
    ...{ tools: { deny: [] }, subagents: {}, reasoning: 'off' as const },
  },
];

function depsOf(store: Store, { hasBudget, url }: Scene, active: ActiveRuns): RunDeps {
  const act = aTool('act', { replay: 'safe', execute: async () => ({ text: 'acted' }) });
  const deps = runDeps(store, { active, model: scriptedModel(), tools: [] });
  const budgets = hasBudget ? { session: limit, tree: limit, run: limit } : {};
  const rules = createBudgetRules({ budgets, agents: [], defaultAgent: 'main' as AgentId });
  const policy = { access: { owners: new Set<string>() }, identityLinks: identityLinksFrom({}) };
  const settings = { ...deps.settings, handOverMs: 0 };
  const spawning = {
    store,
    agents,
    limits: { ...spawnLimits, depth: 2 },
    authority: 'guest',
    models: modelsAt(url),
  } as const;
  return {
    ...deps,
    settings,
    budgets: createRunBudgets({ store, clock: systemClock, rules, policy }),
    toolsFor: (run) => [act, createSpawnTool({ ...spawning, probe: noProbe, start: () => undefined }, run)],
  };
}

function modelsAt(url: string): Models {
  const provider = (model: string) =>
    createAnthropicProvider({ model, apiKeys: ['test-key'], baseUrl: url, answerTokens: 1_000 });
  const [one, other] = [provider(first), provider(fallback)];
  const retry = { clock: aPatientClock(), random: () => 0 };
  return {
    stackFor: (_name, ledger) =>
      ledger
        ? withRetry(metered(one, ledger), { ...retry, fallbacks: [metered(other, ledger)] })
        : withRetry(one, { ...retry, fallbacks: [other] }),
    nameFor: () => first,
    isKnown: (name) => name === first,
    names: () => [first],
  };
}

type Row = Usage & {
  readonly sessionId: string;
  readonly state: string;
  readonly model: string;
  readonly cost: number;
  readonly reserved: number;
  readonly budgetKeys: string | null;
};

type Ledger = {
  readonly rows: readonly Row[];
  /** Runs and sub-agents that haven't ended. */
  readonly live: number;
  /** `cost`: micro-dollars, including all sessions below. */
  readonly sessions: readonly {
    readonly id: string;
    readonly parentSessionId: string | null;
    readonly cost: number;
  }[];
  readonly budgets: readonly { readonly key: string; readonly spent: number; readonly reserved: number }[];
};

const sum = (amounts: readonly { readonly cost: number }[]) =>
  amounts.reduce((all, { cost }) => all + cost, 0);

function judge(ledger: Ledger, counted: readonly Counted[], hasBudget: boolean): void {
  const { rows, live, sessions, budgets } = ledger;
  const priced = counted.map((call) => ({ ...call, cost: costOf(call.usage, lookUpPrices(call.model)) }));
  const of = (state: string) => rows.filter((row) => row.state === state);
  expect([live, of('open').length, sum(of('void'))]).toEqual([0, 0, 0]);
  // Each settled call is one of the server's, with its tokens at the prices of its own model.
  const whole = priced.filter(({ isWhole }) => isWhole);
  for (const { model, cost, inputTokens, outputTokens } of of('settled')) {
    const index = whole.findIndex(
      ({ model: own, usage }) =>
        own === model && usage.inputTokens === inputTokens && usage.outputTokens === outputTokens,
    );
    expect(index, 'a call that the server knows').not.toBe(-1);
    for (const found of whole.splice(index, 1)) expect(cost).toBe(found.cost);
  }
  // All others are unknown and cost their bound.
  expect(of('settled').length + of('unknown').length).toBeGreaterThanOrEqual(counted.length);
  expect(sum(rows)).toBeGreaterThanOrEqual(sum(priced));
  for (const { id, cost } of sessions) {
    const own = rows.filter(({ sessionId }) => sessionId === id);
    expect(cost).toBe(sum(own) + sum(sessions.filter(({ parentSessionId }) => parentSessionId === id)));
  }
  if (!hasBudget) return;
  const charged = (key: string) => rows.filter(({ budgetKeys }) => keysOf(budgetKeys).includes(key));
  for (const { key, ...budget } of budgets)
    expect(budget, key).toEqual({ spent: sum(charged(key)), reserved: 0 });
  // Sub-agents spend from their conversation's budget.
  const ofTop = budgets.filter(({ key }) => key.startsWith('session:'));
  expect(ofTop.map(({ spent }) => spent)).toEqual([sum(rows)]);
  for (const row of rows) expect(row.cost).toBeLessThanOrEqual(row.reserved);
}

/** Checks that the stored sums of each session are those of its calls. */
async function judgeSums(store: Store, laneKeys: readonly string[]): Promise<void> {
  for (const { id: sessionId } of await store.read(readSessions, { keys: laneKeys, limit: 100 }))
    expect(await store.read(readSums, { sessionId })).toEqual(await store.read(sumUp, { sessionId }));
}

const keysOf = (budgetKeys: string | null) => JSON.parse(budgetKeys ?? '[]') as readonly string[];

const readLedger: StoreQuery<{ readonly laneKey: string }, Ledger> = {
  query: 'readLedger',
  run: async (tx, { laneKey }) => {
    const lanes = await readLanes.run(tx, { laneKey });
    const sessions = await tx.db
      .selectFrom('sessions')
      .select(['id', 'parentSessionId', 'cost'])
      .where('key', 'in', lanes)
      .execute();
    const ids = sessions.map(({ id }) => id);
    const rows = await tx.db.selectFrom('modelCalls').selectAll().where('sessionId', 'in', ids).execute();
    const runs = await tx.db
      .selectFrom('runs')
      .select('id')
      .where('sessionId', 'in', ids)
      .where('state', '<>', 'finished')
      .execute();
    const children = await tx.db
      .selectFrom('children')
      .select('id')
      .where('id', 'in', ids)
      .where('state', '<>', 'done')
      .execute();
    const keys = new Set(rows.flatMap(({ budgetKeys }) => keysOf(budgetKeys)));
    const budgets = await tx.db
      .selectFrom('budgets')
      .select(['key', 'spent', 'reserved'])
      .where('key', 'in', ['', ...keys])
      .execute();
    return { rows, live: runs.length + children.length, sessions, budgets };
  },
};

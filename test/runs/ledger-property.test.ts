/**
 * The ledger against what the local server counted: whatever the model does wrong, whoever stops the run, wherever
 * the process dies.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { AgentId } from '../../src/contracts/ids.ts';
import type { Usage } from '../../src/contracts/model.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { createBudgetRules } from '../../src/models/budget-rules.ts';
import { ratesOf } from '../../src/models/call-bound.ts';
import { costOf } from '../../src/models/cost.ts';
import { metered } from '../../src/models/metering.ts';
import type { Models } from '../../src/models/models.ts';
import { lookUpPrices } from '../../src/models/prices.ts';
import { withRetry } from '../../src/models/retry.ts';
import type { ActiveRuns } from '../../src/runs/active-runs.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import { createRunBudgets } from '../../src/runs/run-budgets.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { claimLane } from '../../src/store/lanes/claim-lane.ts';
import { addProcess } from '../../src/store/processes/process-records.ts';
import { aTool } from '../agent/support/builders.ts';
import { scriptedModel } from '../agent/support/scripted-model.ts';
import { aPatientClock } from '../models/builders.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { aLane, aMessage, aWorker, framing, unique } from '../store/builders.ts';
import { holds } from '../support/holds.ts';
import { cutPower } from '../support/power-cut.ts';
import { openOwnStore } from './own-store.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

/** PROOF_CASES: any number. */
const cases = Number(process.env.PROOF_CASES ?? (process.env.PARLEY_LONG === '1' ? 5_000 : 12));
const [first, fallback] = ['claude-sonnet-5-5', 'claude-haiku-4-5'] as const;

/** What comes of one request. */
type Step =
  | 'answers'
  | 'acts'
  | 'is refused'
  | 'disconnects'
  | 'breaks'
  | 'ends early'
  | 'errs'
  | 'stopped'
  | 'handed over';
/** Most of them are such that the run goes on. */
const steps: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.constantFrom<Step>('acts', 'is refused', 'disconnects'), weight: 3 },
  fc.constantFrom<Step>('answers', 'breaks', 'ends early', 'errs', 'stopped', 'handed over'),
);

const aCase = fc.record({
  script: fc.array(steps, { minLength: 1, maxLength: 8 }),
  /** The write at which the process dies, if it comes so far. */
  cut: fc.option(fc.record({ write: fc.integer({ min: 2, max: 14 }), isCommitted: fc.boolean() })),
  hasBudget: fc.boolean(),
});

describe('the ledger of a run', () => {
  const open = openOwnStore();
  let server: AnthropicServer;
  beforeAll(async () => {
    server = await startAnthropicServer();
  });
  afterAll(() => server.close());

  it('counts each call as the server did, or at a bound above it, and holds nothing in the end', {
    timeout: 900_000,
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
        await workUntilEnd(open(), scene);
        judge(
          await open().read(readLedger, { laneKey: aLane(scene.conversation).key }),
          play.counted,
          hasBudget,
        );
      }),
      { numRuns: cases },
    );
  });
});

/** Tokens that the server has counted for a request; `isWhole`: it said so in the answer. */
type Counted = { readonly model: string; readonly usage: Usage; readonly isWhole: boolean };

type Play = {
  readonly counted: readonly Counted[];
  next(model: string): Reply;
  /** Who works the lane now. */
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
      counted.push({ model, usage, isWhole: step === 'answers' || step === 'acts' });
      const zero = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
      const turn = { chunks: ['some ', 'words'], usage: { input_tokens, output_tokens, ...zero } };
      if (step === 'stopped') play.worker.stop();
      if (step === 'handed over') play.worker.handOver();
      switch (step) {
        case 'answers':
          return turn;
        case 'acts':
          return { ...turn, toolCalls: [{ name: 'act', input: { n: counted.length } }] };
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

/** A process that starts, works the lane until it rests, and may die on the way. */
async function workUntilEnd(store: Store, scene: Scene): Promise<void> {
  const { conversation, folder, play, hasBudget, url } = scene;
  const boot = { id: unique('boot'), folder };
  await store.write(addProcess, boot);
  const active = someActiveRuns(store, boot.id);
  const models = modelsAt(url);
  const rates = hasBudget ? undefined : ratesOf(models);
  try {
    for (;;) {
      const claim = await store.write(claimLane, {
        ...{
          laneKey: aLane(conversation).key,
          holder: boot.id,
          leaseMs: 10_000,
          framing,
          maxAttempts: 9,
          rates,
        },
        ...{ newRunId: crypto.randomUUID(), models: { byAgent: {}, byDefault: first } },
      });
      if (claim.kind === 'idle') return;
      if (claim.kind === 'again') continue;
      if (claim.kind !== 'run') throw new Error(`the lane is ${claim.kind}`);
      const leaving = new AbortController();
      const { runId } = claim.run;
      play.worker = { stop: () => active.cancel(runId, 'stop'), handOver: () => leaving.abort() };
      await executeRun({ ...depsOf(store, scene, active), models, rates }, claim.run, {
        ...{ signal: leaving.signal, mayKeepLane: () => false, claims: () => undefined },
      });
    }
  } finally {
    await active.close();
  }
}

/** Large enough for every case. */
const limit = 1e9;

function depsOf(store: Store, { hasBudget, conversation }: Scene, active: ActiveRuns) {
  const act = aTool('act', { replay: 'safe', execute: async () => ({ text: 'acted' }) });
  const deps = runDeps(store, { active, model: scriptedModel(), tools: [act] });
  const budgets = hasBudget ? { session: limit, run: limit } : {};
  const rules = createBudgetRules({ budgets, agents: [], defaultAgent: conversation as AgentId });
  const config = { owners: [], identityLinks: {} };
  const settings = { ...deps.settings, handOverMs: 0 };
  return { ...deps, settings, budgets: createRunBudgets({ store, clock: systemClock, rules, config }) };
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
  readonly state: string;
  readonly model: string;
  readonly cost: number;
  readonly reserved: number;
  readonly budgetKeys: string | null;
};

type Ledger = {
  readonly rows: readonly Row[];
  /** Of the session, micro-dollars. */
  readonly cost: number;
  readonly budgets: readonly { readonly spent: number; readonly reserved: number }[];
};

function judge({ rows, cost, budgets }: Ledger, counted: readonly Counted[], hasBudget: boolean): void {
  const priceOf = ({ model, usage }: Pick<Counted, 'model' | 'usage'>) => costOf(usage, lookUpPrices(model));
  const sum = (amounts: readonly number[]) => amounts.reduce((all, amount) => all + amount, 0);
  const of = (state: string) => rows.filter((row) => row.state === state);
  const all = sum(rows.map((row) => row.cost));
  expect([of('open').length, sum(of('void').map((row) => row.cost))]).toEqual([0, 0]);
  // Each counted call is one of the server's, at its tokens and the prices of its own model.
  const whole = counted.filter(({ isWhole }) => isWhole);
  for (const { model, cost: price, ...row } of of('settled')) {
    const index = whole.findIndex(
      ({ model: own, usage }) =>
        own === model && usage.inputTokens === row.inputTokens && usage.outputTokens === row.outputTokens,
    );
    expect(index, 'a call that the server knows').not.toBe(-1);
    for (const found of whole.splice(index, 1)) expect(price).toBe(priceOf(found));
  }
  // Every other one is unknown, and costs its bound.
  expect(of('settled').length + of('unknown').length).toBeGreaterThanOrEqual(counted.length);
  expect(all).toBeGreaterThanOrEqual(sum(counted.map(priceOf)));
  expect(cost).toBe(all);
  if (!hasBudget) return;
  expect(budgets).toEqual([
    { spent: all, reserved: 0 },
    { spent: all, reserved: 0 },
  ]);
  for (const row of rows) expect(row.cost).toBeLessThanOrEqual(row.reserved);
}

const readLedger: StoreQuery<{ readonly laneKey: string }, Ledger> = {
  query: 'readLedger',
  run: async (tx, { laneKey }) => {
    const { id, cost } = await tx.db
      .selectFrom('sessions')
      .select(['id', 'cost'])
      .where('key', '=', laneKey)
      .executeTakeFirstOrThrow();
    const rows = await tx.db.selectFrom('modelCalls').selectAll().where('sessionId', '=', id).execute();
    const keys = rows.flatMap(({ budgetKeys }) => JSON.parse(budgetKeys ?? '[]') as readonly string[]);
    const budgets = await tx.db
      .selectFrom('budgets')
      .select(['spent', 'reserved'])
      .where('key', 'in', ['', ...new Set(keys)])
      .execute();
    return { rows, cost, budgets };
  },
};

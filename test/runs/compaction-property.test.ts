/** Random histories that are compacted repeatedly, by holders that fail, are killed, or have lost their lane. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { pairCalls } from '../../src/agent/call-pairs.ts';
import { contextLimits, planCompaction } from '../../src/agent/compaction-cut.ts';
import { requestOf } from '../../src/agent/convert.ts';
import { estimateTokens } from '../../src/agent/fit-context.ts';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { hasCode } from '../../src/contracts/errors.ts';
import type { AgentMessage, MessagePart, TranscriptMessage } from '../../src/contracts/message.ts';
import type { LlmProvider } from '../../src/contracts/model.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { failureError } from '../../src/models/api-fault.ts';
import { createDemoProvider } from '../../src/models/demo.ts';
import { metered } from '../../src/models/metering.ts';
import { createRunCalls, type RunCalls } from '../../src/runs/call-ledger.ts';
import { compactSession } from '../../src/runs/compactor.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { commitToolTurn, storeToolResults } from '../../src/store/lanes/commit-turn.ts';
import { readContext, readTranscriptPage } from '../../src/store/reads/read-transcript.ts';
import { llmErrors } from '../agent/support/llm-grammar.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { holds } from '../support/holds.ts';
import { isLong } from '../support/long-run.ts';
import { silentLog } from '../support/silent-log.ts';

/** Ends of a summary: stored, failed, its holder killed before or after the commit, or its holder already replaced. */
const fates = ['stored', 'stored', 'refused', 'empty', 'killed before', 'killed after', 'stale'] as const;

type Step = {
  readonly words: number;
  /** The word counts of the results of calls made before the answer. */
  readonly results: readonly number[];
  readonly answerWords: number;
  /** The end of the compaction before the model's answer; undefined if there is none. */
  readonly fate: (typeof fates)[number] | undefined;
  readonly summaryWords: number;
};

const words = fc.integer({ min: 1, max: 120 });
const step: fc.Arbitrary<Step> = fc
  .record({
    words,
    results: fc.array(words, { maxLength: 3 }),
    answerWords: words,
    fate: fc.option(fc.constantFrom(...fates)),
    summaryWords: fc.integer({ min: 1, max: 2_000 }),
  })
  .map((made) => ({ ...made, fate: made.fate ?? undefined }));

const budget = isLong
  ? { numRuns: 1_000, interruptAfterTimeLimit: 240_000 }
  : { numRuns: 20, interruptAfterTimeLimit: 4_000 };

/** Long enough to need a summary in the end. */
const long = Array.from({ length: 8 }, (_, index): Step => {
  const fate = index < 5 ? undefined : 'stored';
  return { words: 120, results: [], answerWords: 120, fate, summaryWords: 50 };
});

/** Their threshold is 1,500 tokens. */
const limits = contextLimits(2_000);
/** Few enough to fit into the shortest summary. */
const names = ['KEY-1a', 'KEY-2b', 'KEY-3c'] as const;
const fact = 'Ann has a green boat.';

class Killed extends Error {}

describeEachDatabase('a randomly compacted history', (open) => {
  it('loses nothing that it must keep, and nothing at all if the summary fails', async () => {
    let [histories, turns, stored] = [0, 0, 0];
    await holds(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        const play = new Play(open());
        for (const [index, each] of steps.entries()) await play.step(each, names[index]);
        histories += 1;
        turns += steps.length;
        stored += play.stored;
      }),
      { ...budget, examples: [[long]] },
    );
    expect(stored).toBeGreaterThan(0);
    if (isLong) console.log(`${histories} histories, ${turns} turns, ${stored} summaries stored`);
  });
});

/** Reads the open calls of a session, what its calls cost, and what it was charged. */
const spentOn: StoreQuery<
  { readonly sessionId: string },
  { readonly open: number; readonly cost: number; readonly charged: number }
> = {
  query: 'spentOn',
  run: async (tx, { sessionId }) => {
    const rows = await tx.db
      .selectFrom('modelCalls')
      .select(['state', 'cost'])
      .where('sessionId', '=', sessionId)
      .execute();
    const session = tx.db.selectFrom('sessions').select('cost').where('id', '=', sessionId);
    return {
      open: rows.filter(({ state }) => state === 'open').length,
      cost: rows.reduce((sum, { cost }) => sum + cost, 0),
      charged: (await session.executeTakeFirstOrThrow()).cost,
    };
  },
};

class Play {
  stored = 0;
  readonly #store: Store;
  readonly #conversation = unique('c');
  readonly #calls = new Map<string, RunCalls>();
  #rows: readonly TranscriptMessage[] = [];
  #knowsFact = false;

  constructor(store: Store) {
    this.#store = store;
  }

  async step(given: Step, name: string | undefined): Promise<void> {
    const text = `${'word '.repeat(given.words)}${name ?? ''}`;
    await aWorker(this.#store).accept(aMessage({ conversation: this.#conversation, text }));
    let run = await this.#claim();
    if (given.results.length > 0) await this.#toolTurn(run, given.results);
    if (given.fate !== undefined) run = await this.#compact(run, given, given.fate);
    const modelCalls = this.#callsOf(run).endAll();
    await aWorker(this.#store).answer(run, 'word '.repeat(given.answerWords), { modelCalls });
    await this.#judge(run.sessionId);
  }

  /** Claims the run as a new process, with a lease that expires immediately so that the next one needn't wait. */
  async #claim(): Promise<ClaimedRun> {
    for (;;) {
      const claimed = await aWorker(this.#store, unique('worker')).claim(aLane(this.#conversation).key, 1);
      if (claimed.kind === 'run') return claimed.run;
    }
  }

  async #toolTurn(
    { laneKey, epoch, runId, sessionId }: ClaimedRun,
    results: readonly number[],
  ): Promise<void> {
    const fence = { laneKey, epoch, runId };
    const id = crypto.randomUUID();
    const calls = results.map((_, index) => ({ callId: `call_${index}`, name: 'look', input: '{}' }));
    const parts: MessagePart[] = [
      ...calls.map(({ callId }): MessagePart => {
        return { type: 'tool_call', data: { id: callId, name: 'look', input: '{}', finished: true } };
      }),
      { type: 'finish', data: { reason: 'tool_use', time: 1 } },
    ];
    await this.#store.write(commitToolTurn, {
      ...fence,
      message: { id, sessionId, parts, model: 'test' },
      calls,
    });
    const found = calls.map(({ callId }, index) => ({
      callId,
      isError: false,
      parts: [
        {
          type: 'tool_result' as const,
          data: {
            tool_call_id: callId,
            name: 'look',
            content: 'found '.repeat(results[index] ?? 1),
            is_error: false,
          },
        },
      ],
    }));
    await this.#store.write(storeToolResults, { ...fence, messageId: id, results: found });
  }

  async #compact(run: ClaimedRun, given: Step, fate: Step['fate'] & string): Promise<ClaimedRun> {
    const before = await this.#context(run.sessionId);
    const isPlanned = planCompaction(before.messages, before.summary, limits) !== undefined;
    const kill = () => {
      throw new Killed();
    };
    let successor: ClaimedRun | undefined;
    const model = summariser(async () => {
      if (fate === 'killed before') kill();
      if (fate === 'refused') throw failureError({ kind: 'failed', detail: 'not today' });
      if (fate === 'stale') successor = await this.#claim();
      const said = fate === 'empty' ? ' ' : 'so '.repeat(given.summaryWords);
      return this.#knowsFact ? said : `${said}\n<facts>\n+ ${fact}\n</facts>`;
    });
    const calls = this.#callsOf(run);
    const deps = { log: silentLog, store: this.#store, calls, limits };
    const ledger = calls.beside('summary');
    const probe = fate === 'killed after' ? { reach: kill } : noProbe;
    const ended = await compactSession(
      { ...deps, probe, model: metered(model, ledger) },
      { run, child: undefined, progress: () => undefined },
      new AbortController().signal,
    ).then(
      ({ kind }) => kind,
      (error: unknown) => error,
    );
    const after = await this.#context(run.sessionId);
    const isStored = isPlanned && (fate === 'stored' || fate === 'killed after');
    if (isStored) this.#judgeSummary(before, after);
    else expect(after).toEqual(before);
    if (!isPlanned) expect(ended).toBe('too-short');
    else if (fate === 'stored') expect(ended).toBe('compacted');
    else if (fate.startsWith('killed')) expect(ended).toBeInstanceOf(Killed);
    else expect(hasCode(ended, fate === 'stale' ? 'stale_epoch' : 'model_failed')).toBe(true);
    return successor ?? (ended instanceof Killed ? this.#claim() : run);
  }

  /** Returns the ledger of this claim, which numbers its calls. */
  #callsOf(run: ClaimedRun): RunCalls {
    const key = `${run.runId} ${run.epoch}`;
    const deps = { store: this.#store, clock: systemClock, probe: noProbe, rate: undefined };
    const calls =
      this.#calls.get(key) ??
      createRunCalls({ ...deps, purpose: 'turn', limits: async () => [], freedRoom: () => undefined }, run);
    this.#calls.set(key, calls);
    return calls;
  }

  #judgeSummary(before: Context, after: Context): void {
    this.stored += 1;
    this.#knowsFact = true;
    const [old, left] = [shown(before), shown(after)].map(estimateTokens);
    expect(left).toBeLessThanOrEqual(Math.min(0.7 * (old ?? 0), limits.threshold));
    expect(before.messages.slice(before.messages.length - after.messages.length)).toEqual(after.messages);
    const replaced = before.messages.slice(0, before.messages.length - after.messages.length);
    const paired = (messages: readonly AgentMessage[]) =>
      pairCalls(messages).flatMap((calls) => calls?.map(({ call, content }) => [call, content]) ?? []);
    expect([...paired(replaced), ...paired(after.messages)]).toEqual(paired(before.messages));
    // A message that the model hasn't answered is never summarized.
    const answered = before.messages.findLastIndex(({ role }) => role === 'assistant');
    expect(replaced.length).toBeLessThanOrEqual(answered + 1);
  }

  /** Checks a step: the transcript has only grown, and the model is shown a history with all that must be in it. */
  async #judge(sessionId: string): Promise<void> {
    const rows = await this.#store.read(readTranscriptPage, { sessionId, limit: 1_000 });
    expect(rows.slice(0, this.#rows.length)).toEqual(this.#rows);
    expect(rows.map(({ position }) => position)).toEqual(rows.map((_, index) => index + 1));
    this.#rows = rows;
    const context = await this.#context(sessionId);
    const written = rows.filter(({ isSummary }) => !isSummary);
    expect(context.messages).toEqual(written.slice(written.length - context.messages.length));
    expect(llmErrors(requestOf(shown(context)))).toEqual([]);
    const text = JSON.stringify(shown(context));
    for (const name of names)
      expect([name, text.includes(name)]).toEqual([name, JSON.stringify(written).includes(name)]);
    if (this.#knowsFact) expect(text).toContain(fact);
    const { open, cost, charged } = await this.#store.read(spentOn, { sessionId });
    expect([open, charged]).toEqual([0, cost]);
  }

  #context(sessionId: string): Promise<Context> {
    return this.#store.read(readContext, { sessionId });
  }
}

type Context = {
  readonly summary: TranscriptMessage | undefined;
  readonly messages: readonly TranscriptMessage[];
};

function shown({ summary, messages }: Context): readonly TranscriptMessage[] {
  return summary === undefined ? messages : [summary, ...messages];
}

function summariser(say: () => Promise<string>): LlmProvider {
  const demo = createDemoProvider({ clock: systemClock });
  const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };
  return { ...demo, send: async () => ({ text: await say(), usage, cost: 7, model: 'test' }) };
}

/** Conversations that grow too long, on the real loop, the real store and the strict model server. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { renderTrace } from '../../src/cli/render-trace.ts';
import type { FeedEvent } from '../../src/contracts/feed.ts';
import { textOf } from '../../src/contracts/message.ts';
import type { LlmProvider } from '../../src/contracts/model.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { metered } from '../../src/models/metering.ts';
import type { Models } from '../../src/models/models.ts';
import { withRetry } from '../../src/models/retry.ts';
import { alertText } from '../../src/replies/owner-texts.ts';
import { executeRun, type RunDeps, type RunOptions } from '../../src/runs/execute-run.ts';
import { endNotice } from '../../src/runs/plan-answer.ts';
import { readOpenNotices } from '../../src/store/delivery/queue-alert-message.ts';
import { readContext, readTranscriptPage } from '../../src/store/reads/read-transcript.ts';
import { readUsage } from '../../src/store/reads/read-usage.ts';
import { readWhy } from '../../src/store/reads/why/read-why.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aTool } from '../agent/support/builders.ts';
import { manualClock } from '../agent/support/manual-clock.ts';
import { aPatientClock } from '../models/builders.ts';
import { onlyModel } from '../models/only-model.ts';
import { createGate, type Gate } from '../platforms/anthropic/gate.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from '../support/own-store.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';
import { saidIn } from './said-in.ts';

describe('the compaction of a conversation', () => {
  const store = openOwnStore();
  let model: AnthropicServer;
  beforeAll(async () => {
    // The server refuses longer prompts, whatever window the provider assumes.
    model = await startAnthropicServer({ contextTokens: 6_500 });
  });
  afterAll(() => model.close());

  /** A process whose model has this window; of 8,000 tokens, 6,000 are the threshold and 1,800 the tail. */
  const told: FeedEvent[] = [];
  const aProcess = (window: number, over: Partial<RunDeps> = {}) => {
    const boot = unique('boot');
    const worker = aWorker(store(), boot);
    const claude = createAnthropicProvider({
      model: 'claude-opus-4-6',
      apiKeys: ['test-key'],
      baseUrl: model.url,
    });
    const provider = { ...claude, model: () => ({ ...claude.model(), contextWindow: window }) };
    const active = someActiveRuns(store(), boot);
    const scripted = { requests: [], stream: provider.stream };
    const deps = {
      ...runDeps(store(), { active, model: scripted, tools: [] }),
      models: { ...onlyModel(provider), stackFor: stackOf(provider), nameFor: nameOf },
      feed: {
        isFollowed: () => true,
        onTextRequest: () => undefined,
        publish: (_: string, event: FeedEvent) => void told.push(event),
      },
      ...over,
    };
    const work = async (conversation: string, signal: AbortSignal = new AbortController().signal) => {
      const run = await worker.claimRun(aLane(conversation).key);
      const options: RunOptions = { signal, mayKeepLane: () => false, claims: () => undefined };
      const left = await executeRun(deps, run, options);
      return { run, left };
    };
    return { active, work, close: () => active.close() };
  };
  /** The models that sessions had chosen when their summaries were requested. */
  const summarisers = new Set<string | undefined>();
  const nameOf: Models['nameFor'] = (_agent, _purpose, own) => {
    summarisers.add(own);
    return own ?? 'nobody';
  };
  let lastRun = '';
  const say = async (conversation: string, text: string, window = 8_000) => {
    await aWorker(store()).accept(aMessage({ conversation, text }));
    const { work, close } = aProcess(window);
    const { run } = await work(conversation);
    await close();
    lastRun = run.runId;
    return run.sessionId;
  };
  const askToCompact = (conversation: string, hint: string) =>
    aWorker(store()).accept(
      aMessage({
        conversation,
        text: '/compact',
        item: { kind: 'command', content: commandContent(hint) },
      }),
    );
  const contextOf = (sessionId: string) => store().read(readContext, { sessionId });
  const outcomes = async (conversation: string) =>
    (await readLane(store(), aLane(conversation).key)).inbox.map(({ outcome }) => outcome);
  const summariesFrom = (start: number) => model.requests.slice(start).filter(({ body }) => isSummary(body));
  const compactionsOf = (id: string) =>
    told.flatMap((event) => (event.kind === 'compaction' && event.runId === id ? [event] : []));
  const lifeOf = (id: string) =>
    told.flatMap((event) => {
      if (event.kind !== 'run' || event.runId !== id) return [];
      return event.reason === undefined ? event.state : `${event.state}: ${event.reason}`;
    });
  const stored = () => told.filter((event) => event.kind === 'compaction' && event.state === 'done').length;
  const storyOf = async (id: string) => {
    const found = await store().read(readWhy, { id, withExcerpts: false });
    return found.kind === 'account' ? renderTrace(found.account) : found.kind;
  };
  const sizes = { long: 'word '.repeat(600), summary: 'Anna wants a boat.' };
  const plain = (body: WireBody) => ({ text: isSummary(body) ? sizes.summary : sizes.long });

  it('ignores impossible token counts when it decides whether a conversation is too long', async () => {
    const toolCalls = [{ name: 'look' }];
    model.script([
      { text: sizes.long },
      { toolCalls, usage: { input_tokens: 900_000 } },
      { toolCalls, usage: { output_tokens: 900_000 } },
      { text: 'Seen.', usage: { input_tokens: 900_000 } },
    ]);
    const conversation = unique('conversation');
    const { work, close } = aProcess(8_000, { toolsFor: () => [aTool('look')] });
    for (const text of ['hello', 'and again']) {
      await aWorker(store()).accept(aMessage({ conversation, text }));
      const { run } = await work(conversation);
      expect((await contextOf(run.sessionId)).tokens).toBeLessThan(2_000);
    }
    await close();
    expect(await outcomes(conversation)).toEqual(['answered', 'answered']);
    expect(await store().read(readOpenNotices, { limit: 10 })).toEqual([]);
  });

  it('summarizes once for each crossing of the threshold, and keeps the first facts', async () => {
    const fact = 'Anna’s boat is green.';
    let summaries = 0;
    model.script((body) => {
      if (!isSummary(body)) return plain(body);
      summaries += 1;
      // Stated once, and kept by every later summary.
      return { text: summaries === 1 ? `${sizes.summary}\n<facts>\n+ ${fact}\n</facts>` : sizes.summary };
    });
    const conversation = unique('c');
    const start = model.requests.length;
    let sessionId = await say(conversation, 'My boat is green, its number is BOAT-7731.');
    const before = stored();
    for (let turn = 0; turn < 14 || stored() < before + 2; turn += 1)
      sessionId = await say(conversation, `Question ${turn}?`);
    expect(model.requests.slice(start).filter(({ refusal }) => refusal !== undefined)).toEqual([]);
    expect(new Set(await outcomes(conversation))).toEqual(new Set(['answered']));
    const { summary, messages } = await contextOf(sessionId);
    expect(textOf(summary?.parts ?? [])).toContain('BOAT-7731');
    for (const kept of [sizes.summary, fact]) expect(lastPrompt(model)).toContain(kept);
    expect([summarisers.size, summarisers.has(undefined)]).toEqual([1, false]);
    // The 15 answers are about 11,000 tokens, and each summary removes about 4,000 of them.
    expect(stored() - before).toBeLessThanOrEqual(3);
    expect(messages.length).toBeLessThan(20);
    const all = await store().read(readTranscriptPage, { sessionId, limit: 100 });
    expect(all.map(({ position }) => position)).toEqual(all.map((_, index) => index + 1));
    const questions = (await outcomes(conversation)).length;
    expect(all.filter(({ isSummary: is }) => !is)).toHaveLength(2 * questions);
  });

  it('summarizes nothing if instructions alone are too long for that to help, and tells the owner', async () => {
    model.script(plain);
    const start = model.requests.length;
    const conversation = unique('conversation');
    const system = [{ text: 'rule '.repeat(3_500), isStable: true }];
    const { work, close } = aProcess(6_000, { systemFor: async () => system });
    for (const text of ['hello', 'and again', 'and once more']) {
      await aWorker(store()).accept(aMessage({ conversation, text }));
      await work(conversation);
    }
    await close();
    expect(model.requests.length - start).toBe(3);
    expect(summariesFrom(start)).toEqual([]);
    const notices = await store().read(readOpenNotices, { limit: 10 });
    const values = { fixed: '4000', threshold: '4500' };
    expect(notices).toMatchObject([{ kind: 'context-full', subject: 'main', values }]);
    expect(notices.map((notice) => alertText(textsFor('en'), notice)).join()).toMatch(
      /^The instructions and tools of main/,
    );
  });

  it('summarizes nothing if the window is too small for the instructions alone, and tells the owner', async () => {
    model.script(plain);
    const start = model.requests.length;
    const conversation = unique('conversation');
    const system = [{ text: 'rule '.repeat(12_000), isStable: true }];
    const { work, close } = aProcess(200_000, { systemFor: async () => system });
    await aWorker(store()).accept(aMessage({ conversation, text: 'hello' }));
    await work(conversation);
    await close();
    expect(summariesFrom(start)).toEqual([]);
    const values = { fixed: '20000', threshold: '6500' };
    await vi.waitFor(async () => {
      const notices = await store().read(readOpenNotices, { limit: 10 });
      expect(notices).toMatchObject([{ kind: 'context-full', subject: 'main', values }]);
    });
    const failure = { kind: 'overflow', detail: 'too long', window: 6_500, fixedTokens: 20_000 } as const;
    const notice = endNotice('model_error', failure, textsFor('en'));
    expect(notice).toMatch(/^My instructions and tools alone are too long/);
  });

  it('compacts a request that the provider refuses as too long, and asks once more in the same turn', async () => {
    model.script(plain);
    const conversation = unique('c');
    const start = model.requests.length;
    for (let turn = 0; turn < 12; turn += 1) await say(conversation, `Question ${turn}?`, 200_000);
    const refused = model.requests.slice(start).filter(({ refusal }) => refusal?.includes('too long'));
    expect([refused.length, summariesFrom(start).length]).toEqual([1, 1]);
    expect(await outcomes(conversation)).toEqual(Array.from({ length: 12 }, () => 'answered'));
  });

  it('keeps the conversation unchanged if the summary fails, and tries again with the next message', async () => {
    let isDown = true;
    model.script((body) => (isSummary(body) && isDown ? { status: 400, message: 'not today' } : plain(body)));
    const conversation = unique('c');
    const said = async (turn: number) => contextOf(await say(conversation, `Question ${turn}?`));
    let context = await said(0);
    let turn = 1;
    for (; !(await outcomes(conversation)).includes('failed') && turn < 14; turn += 1)
      context = await said(turn);
    expect((await outcomes(conversation)).at(-1)).toBe('failed');
    expect([context.summary, context.messages.at(-1)?.role]).toEqual([undefined, 'user']);
    expect(compactionsOf(lastRun)).toMatchObject([
      { state: 'started', oldTokens: expect.any(Number), threshold: 6_000 },
      { state: 'started', progress: 0 },
      { state: 'failed' },
    ]);
    expect(await storyOf(lastRun)).toMatch(/\(summary\): not counted, so it cost nothing/);
    expect(await storyOf(lastRun)).toMatch(/ended \(compaction_failed\): model_failed: .*not today/);
    isDown = false;
    context = await said(turn);
    expect(context.summary).toBeDefined();
    expect((await outcomes(conversation)).at(-1)).toBe('answered');
  });

  it('retries a summary if the model first thinks until there is no room for a word', async () => {
    const asked: unknown[] = [];
    model.script((body) => {
      if (isSummary(body)) asked.push(body.max_tokens);
      return asked.length === 1 ? { thinking: 'Hm.', stopReason: 'max_tokens' } : plain(body);
    });
    const conversation = unique('c');
    let sessionId = '';
    for (const text of ['one', 'two', 'three']) sessionId = await say(conversation, text);
    await askToCompact(conversation, 'Keep the plan.');
    const { work, close } = aProcess(8_000);
    await work(conversation);
    await close();
    expect(textOf((await contextOf(sessionId)).summary?.parts ?? [])).toContain(sizes.summary);
    expect(asked).toEqual([expect.any(Number), 16_000]);
    expect((await ledgerOf(sessionId)).summaries).toEqual(['settled', 'settled']);
  });

  it('summarizes on request, in a run that can be stopped and handed over', async () => {
    let gate: Gate | undefined;
    model.script((body) => (isSummary(body) && gate ? { ...plain(body), hold: { gate } } : plain(body)));
    const conversation = unique('c');
    let sessionId = '';
    for (const text of ['one', 'two', 'three']) sessionId = await say(conversation, text);
    const laneKey = aLane(conversation).key;

    gate = createGate();
    await askToCompact(conversation, 'Keep the plan.');
    const stopped = aProcess(8_000);
    const stopping = stopped.work(conversation);
    await gate.reached;
    expect(await claimOf(laneKey)).toBe('busy');
    const { runId } = (await readActiveRun(laneKey)) ?? expect.fail('no run');
    stopped.active.cancel(runId, 'stop');
    await stopping;
    expect([(await contextOf(sessionId)).summary, (await outcomes(conversation)).at(-1)]).toEqual([
      undefined,
      'cancelled',
    ]);

    gate = createGate();
    await askToCompact(conversation, 'Keep the plan.');
    const leaving = aProcess(8_000);
    const shutdown = new AbortController();
    const left = leaving.work(conversation, shutdown.signal);
    await gate.reached;
    shutdown.abort();
    expect((await left).left).toEqual({ kind: 'handed-over' });
    gate = undefined;
    const made = (await aProcess(8_000).work(conversation)).run.runId;
    expect(lastPrompt(model)).toContain('Keep the plan.');
    expect((await outcomes(conversation)).slice(-2)).toEqual(['cancelled', 'answered']);
    const steps = compactionsOf(made).map(({ state, progress }) => progress ?? state);
    expect(steps).toEqual(['started', 0, 'failed', 'started', 0, 1, 'done']);
    expect([lifeOf(runId), lifeOf(made)]).toEqual([
      ['started', 'ended: aborted'],
      ['started', 'started', 'ended'],
    ]);
    const story = await storyOf(made);
    expect(story).toMatch(/model claude-opus-4-6 \(summary\): \d+ tokens in, \d+ out.*, \$0\.\d+/);
    expect(story).toContain('the history was summarised as');
    const { summaries, cost, charged } = await ledgerOf(sessionId);
    expect(summaries).toEqual(['unknown', 'unknown', 'settled']);
    expect(charged).toBe(cost);
    const usage = await store().read(readUsage, { sessionId });
    const own = usage?.models.reduce((sum, each) => sum + each.cost, 0);
    expect([own, usage?.childrenCost, usage?.unsure], 'also of a run that left no message').toEqual([
      cost,
      0,
      2,
    ]);
    expect(textOf((await contextOf(sessionId)).summary?.parts ?? [])).toContain(sizes.summary);
    for (const each of [stopped, leaving]) await each.close();
  });

  it('limits a requested summary to the time of a run, even if the model never answers', async () => {
    model.script((body) => (isSummary(body) ? { hang: true } : plain(body)));
    const conversation = unique('c');
    for (const text of ['one', 'two', 'three']) await say(conversation, text);
    await askToCompact(conversation, 'Keep the plan.');
    const clock = manualClock();
    const { work, close } = aProcess(8_000, { clock });
    const asked = model.requests.length + 1;
    const working = work(conversation);
    await model.waitForRequest(asked);
    clock.advance(10_000);
    const { run } = await working;
    await close();
    expect((await outcomes(conversation)).at(-1)).toBe('failed');
    expect((await store().read(saidIn, conversation)).at(-1)).toBe(
      'Sorry, that took too long, so I stopped.',
    );
    expect(lifeOf(run.runId)).toEqual(['started', 'ended: timeout']);
  });

  it("says once that the model isn't answering yet, no matter who asked for the summary", async () => {
    let busy = 0;
    model.script((body) => {
      if (!isSummary(body) || busy === 0) return plain(body);
      busy -= 1;
      return { status: 529 };
    });
    const conversation = unique('c');
    const notices = async () => {
      const said = await store().read(saidIn, conversation);
      return said.filter((text) => text.startsWith('The model isn’t answering yet')).length;
    };
    for (const text of ['one', 'two', 'three']) await say(conversation, text);
    // The first three waits take 14 s in all, and the fourth is announced.
    busy = 5;
    await askToCompact(conversation, 'Keep the plan.');
    const asked = aProcess(8_000);
    await asked.work(conversation);
    await asked.close();
    expect([busy, await notices()]).toEqual([0, 1]);
    busy = 5;
    for (let turn = 0; busy > 0 && turn < 14; turn += 1) await say(conversation, `Question ${turn}?`);
    expect([busy, await notices()]).toEqual([0, 2]);
    expect(new Set(await outcomes(conversation))).toEqual(new Set(['answered']));
  });

  it("doesn't summarize beyond a budget, and tells the person", async () => {
    model.script(plain);
    const conversation = unique('c');
    let sessionId = '';
    for (const text of ['one', 'two', 'three']) sessionId = await say(conversation, text);
    const before = model.requests.length;
    await askToCompact(conversation, 'Keep the plan.');
    const limit = { scope: 'session', key: unique('session'), limit: 1 } as const;
    const budgets = { uncounted: [], limitsFor: () => async () => [limit], hasOwner: async () => false };
    const { work, close } = aProcess(8_000, { budgets });
    const { run } = await work(conversation);
    await close();
    expect(model.requests.length).toBe(before);
    expect((await ledgerOf(sessionId)).summaries).toEqual([]);
    expect((await outcomes(conversation)).at(-1)).toBe('failed');
    expect(await storyOf(run.runId)).toContain('budget_spent');
    expect((await contextOf(sessionId)).summary).toBeUndefined();
  });

  const ledgerOf = (sessionId: string) =>
    store().read(
      {
        query: 'ledger',
        run: async (tx, of: { readonly sessionId: string }) => {
          const rows = await tx.db
            .selectFrom('modelCalls')
            .selectAll()
            .where('sessionId', '=', of.sessionId)
            .orderBy('openedAt')
            .execute();
          const session = tx.db.selectFrom('sessions').select('cost').where('id', '=', of.sessionId);
          return {
            summaries: rows.flatMap(({ purpose, state }) => (purpose === 'summary' ? state : [])),
            cost: rows.reduce((sum, row) => sum + row.cost, 0),
            charged: (await session.executeTakeFirstOrThrow()).cost,
          };
        },
      },
      { sessionId },
    );
  const claimOf = async (laneKey: string) => {
    return (await aWorker(store(), unique('other')).claim(laneKey)).kind;
  };
  const readActiveRun = (laneKey: string) =>
    store()
      .read(
        {
          query: 'activeRun',
          run: (tx, of: { readonly laneKey: string }) =>
            tx.db.selectFrom('lanes').select('runId').where('key', '=', of.laneKey).executeTakeFirst(),
        },
        { laneKey },
      )
      .then((lane) => (lane?.runId ? { runId: lane.runId } : undefined));
});

/** Returns the stack that the configuration would build: each attempt is a row, and waits take no time. */
function stackOf(provider: LlmProvider): Models['stackFor'] {
  const retrying = { clock: aPatientClock(), random: () => 0 };
  return (_name, ledger) => withRetry(ledger ? metered(provider, ledger) : provider, retrying);
}

function isSummary({ system }: WireBody): boolean {
  return JSON.stringify(system ?? '').includes('keep the memory');
}

function lastPrompt({ requests }: AnthropicServer): string {
  return JSON.stringify(requests.at(-1)?.body.messages);
}

function commandContent(hint: string) {
  return {
    ...{
      text: '/compact',
      prompt: '/compact',
      sender: { id: 'ann', name: 'ann' },
      sentAt: 1,
      attachments: [],
    },
    command: { name: 'compact', input: { input: { hint } } },
  };
}

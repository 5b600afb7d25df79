import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createDemoProvider } from '../../src/models/demo.ts';
import { waitForRun } from '../../src/operations/agents.ts';
import type { RunDeps } from '../../src/runs/execute-run.ts';
import { createAgentService } from '../../src/service/agent-service.ts';
import { hangsAfter, type ScriptedModel, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { onlyModel } from '../models/only-model.ts';
import { playNext, runSettings } from '../runs/run-builders.ts';
import { aLane, aWorker, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { aFolder } from '../support/own-folder.ts';
import { openOwnStore } from '../support/own-store.ts';
import { aFeed } from '../support/some-feed.ts';

async function allOf<Event>(events: AsyncIterable<Event>): Promise<readonly Event[]> {
  const all: Event[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe('the agent service', () => {
  const store = openOwnStore();

  const aService = () => {
    const lane = aLane(unique('c'));
    const listeners = new Set<() => void>();
    const waits: number[] = [];
    const feed = aFeed();
    const service = createAgentService({
      store: store(),
      // Time stands still, so only an event ends a wait.
      clock: {
        now: () => 1,
        wait: (ms, signal) => {
          waits.push(ms);
          return new Promise((resolve) => signal?.addEventListener('abort', () => resolve()));
        },
      },
      probe: noProbe,
      ownerLane: () => lane,
      feed: {
        ...feed,
        watch: (laneKey, onEvent, signal) => {
          expect(laneKey).toBe(lane.key);
          const listener = () => onEvent({ kind: 'changed' });
          listeners.add(listener);
          signal.addEventListener('abort', () => listeners.delete(listener));
        },
      },
      start: () => undefined,
      reserve: () => undefined,
      mediaDir: aFolder(),
      maxFileBytes: 1000,
    });
    const tell = () => {
      for (const listener of listeners) listener();
    };
    return { service, lane, listeners, tell, waits, feed };
  };

  it('learns by event that a run has ended, and polls rarely', async () => {
    const { service, lane, listeners, tell, waits } = aService();
    const { runId } = await service.send({ message: 'hello' });
    const signal = new AbortController().signal;
    const result = service.wait(runId, 30_000, signal);
    while (waits.length === 0) await setImmediate();
    tell();
    while (waits.length === 1) await setImmediate();
    const worker = aWorker(store());
    await worker.answer(await worker.claimRun(lane.key), 'Here I am.', { parts: [] });
    tell();
    expect(await result).toMatchObject({ kind: 'ended', outcome: 'answered', text: 'Here I am.' });
    expect(waits).toEqual([1000, 1000]);
    expect(listeners.size).toBe(0);
  });

  it('stops listening when its caller has gone', async () => {
    const { service, listeners, waits } = aService();
    const { runId } = await service.send({ message: 'hello' });
    const caller = new AbortController();
    const result = service.wait(runId, 30_000, caller.signal);
    while (waits.length === 0) await setImmediate();
    caller.abort();
    expect(await result).toMatchObject({ kind: 'open' });
    expect(listeners.size).toBe(0);
  });

  /** Executes the lane's next run with the model, and publishes its events as the gateway does. */
  const work = async (
    { lane, feed, tell }: ReturnType<typeof aService>,
    model: ScriptedModel,
    over: Partial<RunDeps> = {},
  ) => {
    await playNext(store(), lane.key, { model, over: { feed, ...over } });
    tell();
  };

  it('streams a run as it happens, with one end that holds the answer', async () => {
    const parts = aService();
    const { service, lane } = parts;
    const signal = new AbortController().signal;
    const stream = service.events(lane.key, new AbortController().signal)[Symbol.asyncIterator]();
    const told = allOf(service.run({ message: 'hello' }, signal));
    while (!(await service.isBusy()) || !(await service.isSessionBusy(lane.key))) await setImmediate();
    expect(await service.isStreaming(lane.key)).toBe(false);
    let wasStreaming = false;
    const model = scriptedModel(async function* () {
      wasStreaming = await service.isStreaming(lane.key);
      yield* says('Here I am.');
    });
    await work(parts, model);
    const events = await told;
    expect(wasStreaming).toBe(true);
    expect(events.at(-1)).toEqual({ type: 'response', message: 'Here I am.', done: true });
    expect(events.filter(({ done }) => done)).toHaveLength(1);
    expect(await service.isSessionBusy(lane.key)).toBe(false);
    const seen = [];
    for (let next = await stream.next(); ; next = await stream.next()) {
      seen.push(next.value);
      if ('state' in next.value && next.value.state === 'ended') break;
    }
    expect(seen.map((event) => [event.kind, event.state ?? event.of])).toEqual([
      ['run', 'started'],
      ['session', undefined],
      ['text', 'assistant'],
      ['text', 'chat'],
      ['cost', undefined],
      ['answer', undefined],
      ['run', 'ended'],
    ]);
  });

  it('reports how a run has ended, with a code of its own for a timeout', async () => {
    const parts = aService();
    const { service, lane } = parts;
    const ask = async (message: string) => (await service.send({ message })).runId;
    const caller = { by: 'console', signIn: undefined, signal: new AbortController().signal };
    const told = (runId: string) => waitForRun.run({ agents: service }, { runId, timeoutMs: 0 }, caller);
    const first = await ask('hello');
    expect(await told(first)).toEqual({ status: 'timeout' });
    const settings = { ...runSettings, limits: { ...runSettings.limits, runTimeoutMs: 20 } };
    await work(parts, scriptedModel(hangsAfter([])), { settings });
    const times = { startedAt: expect.any(Number), endedAt: expect.any(Number) };
    const late = { status: 'error', error: { code: 'run_timeout' }, outcome: 'failed', ...times };
    expect(await told(first)).toMatchObject(late);
    const second = await ask('hello again');
    await work(parts, scriptedModel(says('Here I am.')));
    expect(await told(second)).toMatchObject({
      status: 'ok',
      outcome: 'answered',
      text: 'Here I am.',
      ...times,
    });
    const third = await ask('never mind');
    await service.cancel(lane.key);
    expect(await told(third)).toMatchObject({
      status: 'error',
      error: { code: 'cancelled' },
      reason: 'stop',
    });
    expect(await told('nonsense')).toMatchObject({ code: 'not_found' });
  });

  it('shows nothing of an answer in which the agent chose silence', async () => {
    const parts = aService();
    const told = allOf(parts.service.run({ message: 'hello' }, new AbortController().signal));
    while (!(await parts.service.isSessionBusy(parts.lane.key))) await setImmediate();
    await work(parts, scriptedModel(says('NO_REPLY')));
    expect(await told).toEqual([{ type: 'response', message: '', done: true }]);
  });

  it('steers the active run and cancels it once', async () => {
    const parts = aService();
    const { service, lane } = parts;
    await service.send({ message: 'hello' });
    const model = scriptedModel(
      async function* () {
        await service.steer(lane.key, 'and now');
        yield* says('one');
      },
      async function* () {
        expect(await service.cancel(lane.key)).toBe(true);
        yield* says('never stored');
      },
    );
    await work(parts, model);
    expect(model.requests).toHaveLength(2);
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('and now');
    const { inbox } = await readLane(store(), lane.key);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['answered', 'cancelled']);
    expect(await service.cancel(lane.key)).toBe(false);
    expect(await service.isSessionBusy(lane.key)).toBe(false);
  });

  it('cancels a run by its id: while it waits, while it runs, and not after its end', async () => {
    const parts = aService();
    const { service } = parts;
    const ask = async (message: string) => (await service.send({ message })).runId;
    const first = await ask('hello');
    const model = scriptedModel(
      async function* () {
        const waiting = await ask('later');
        expect(await service.cancelRun(waiting)).toBe(true);
        expect(await service.cancelRun(waiting)).toBe(false);
        yield* says('one');
      },
      async function* () {
        expect(await service.cancelRun(first)).toBe(false);
        expect(await service.cancelRun(second)).toBe(true);
        yield* says('never stored');
      },
    );
    await work(parts, model);
    const second = await ask('hello again');
    await work(parts, model);
    const { inbox } = await readLane(store(), parts.lane.key);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['answered', 'cancelled', 'cancelled']);
    expect(await service.cancelRun('nonsense')).toBeUndefined();
  });

  it('summarizes an idle session and says when it is done', async () => {
    const parts = aService();
    const { service, lane } = parts;
    const { signal } = new AbortController();
    await service.send({ message: 'hello' });
    const busy = { type: 'error', error: 'The session is busy.', done: true };
    expect(await allOf(service.summarize(lane.key, signal))).toEqual([busy]);
    await work(parts, scriptedModel(says('Hi.')));
    const told = allOf(service.summarize(lane.key, signal));
    while (!(await service.isSessionBusy(lane.key))) await setImmediate();
    await work(parts, scriptedModel());
    expect(await told).toEqual([
      { type: 'summarize', done: false },
      { type: 'summarize', done: true },
    ]);
    const { inbox } = await readLane(store(), lane.key);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['answered', 'answered']);
  });

  it('reports the progress of a summary', async () => {
    const parts = aService();
    const { service, lane } = parts;
    for (const message of ['one', 'two']) {
      await service.send({ message });
      await work(parts, scriptedModel(says('word '.repeat(1_000))));
    }
    const told = allOf(service.summarize(lane.key, new AbortController().signal));
    while (!(await service.isSessionBusy(lane.key))) await setImmediate();
    const demo = createDemoProvider({ clock: systemClock });
    const small = { ...demo, model: () => ({ ...demo.model(), contextWindow: 4_000 }) };
    await work(parts, scriptedModel(), { models: onlyModel(small) });
    const events = await told;
    expect(events.at(-1)).toEqual({ type: 'summarize', done: true });
    expect(events.flatMap(({ progress }) => progress ?? [])).toEqual(expect.arrayContaining([0, 1]));
  });

  it('reports a fault as the last event', async () => {
    const { service } = aService();
    const told = await allOf(service.run({ message: 'x', session: 'nowhere' }, new AbortController().signal));
    expect(told).toEqual([{ type: 'error', error: 'There is no session nowhere.', done: true }]);
  });

  it('refuses a request that names both an agent and a session', async () => {
    const { service, lane } = aService();
    const sent = service.send({ message: 'hello', session: lane.key, agent: 'other' });
    await expect(sent).rejects.toThrow('Name an agent or a session, not both');
  });
});

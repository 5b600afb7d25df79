/** What a plugin may ask of Parley, in a real gateway. */
import { expect, it } from 'vitest';
import type { PluginApi } from '#contracts/plugin.ts';
import { definePlugin, z } from '#contracts/plugin-kit.ts';
import { defineTool } from '#contracts/tool.ts';
import { createPluginHarness } from '../../src/testing/plugin-harness.ts';

/** Starts a gateway with a plugin that hands its API to the test. */
async function started(setup: (api: PluginApi) => void = () => undefined) {
  let given: PluginApi | undefined;
  const plugin = definePlugin({
    id: 'asking',
    setup(api) {
      given = api;
      setup(api);
    },
  });
  const parley = await createPluginHarness({ plugin });
  if (given === undefined) throw new Error('it was not set up');
  return { parley, api: given, [Symbol.asyncDispose]: parley.stop };
}

const { signal } = new AbortController();

it('gives an agent a message of a plugin once under its key, and returns the answer', async () => {
  await using gateway = await started();
  const { parley, api } = gateway;
  parley.model.says('Noted.');
  const accepted = await api.enqueue({ key: 'tide-1', text: 'The tide is high.' });
  expect(await api.agent.wait(accepted.runId, 20_000, signal)).toMatchObject({ text: 'Noted.' });
  const again = await api.enqueue({ key: 'tide-1', text: 'The tide is high.' });
  expect(again).toMatchObject({ runId: accepted.runId, session: accepted.session });
  await expect.poll(() => api.agent.isSessionBusy(accepted.session)).toBe(false);
  expect(parley.model.requests()).toHaveLength(1);
});

it('runs an agent for a plugin with files and settings of its own, and summarizes its session', async () => {
  await using gateway = await started();
  const { parley, api } = gateway;
  parley.model.says('It says milk.');
  const input = {
    message: 'What does it say?',
    files: [{ name: 'list.txt', bytes: Buffer.from('milk') }],
    override: { timeoutMs: 60_000, prompt: 'Be a librarian.' },
  };
  const events = [];
  for await (const event of api.agent.run(input, signal)) events.push(event);
  expect(events.at(-1)).toEqual({ type: 'response', message: 'It says milk.', done: true });
  const [request] = parley.model.requests();
  expect(JSON.stringify(request?.messages)).toContain('list.txt');
  expect(JSON.stringify(request?.system)).toContain('Be a librarian.');
  const { session, runId } = await api.agent.send({ message: 'And now?' });
  await api.agent.wait(runId, 20_000, signal);
  await expect.poll(() => api.agent.isBusy()).toBe(false);
  expect(await api.agent.isStreaming(session)).toBe(false);
  const told = [];
  for await (const event of api.agent.summarize(session, signal)) told.push(event);
  expect(told.at(-1)).toEqual({ type: 'summarize', done: true });
});

it('shows a plugin the events of its conversation, and lets it steer and stop it', async () => {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  await using gateway = await started((api) =>
    api.tools.register('wait', () =>
      defineTool({
        ...{ name: 'wait', description: 'Waits.', parallelSafe: true, replay: 'safe', authority: 'owner' },
        inputSchema: z.object({}),
        execute: async () => {
          begun.resolve();
          await go.promise;
          return { text: 'Over.' };
        },
      }),
    ),
  );
  const { parley, api } = gateway;
  parley.model.calls('wait', {});
  parley.model.says('I have heard both.');
  const { runId, session } = await api.agent.send({ message: 'Wait.' });
  await begun.promise;
  expect(await api.agent.isSessionBusy(session)).toBe(true);
  const kinds: string[] = [];
  const reading = new AbortController();
  const read = (async () => {
    for await (const event of api.agent.events(session, reading.signal))
      kinds.push('kind' in event ? event.kind : 'lagged');
  })();
  await api.agent.steer(session, 'And this.');
  go.resolve();
  expect(await api.agent.wait(runId, 20_000, signal)).toMatchObject({ text: 'I have heard both.' });
  expect(JSON.stringify(parley.model.requests().at(-1)?.messages)).toContain('And this.');
  await expect.poll(() => kinds.length).toBeGreaterThan(0);
  reading.abort();
  await read;
  expect(await api.agent.cancel(session)).toBe(false);
});

it('calls a schedule again and again, but not twice at once, and names its faults', async () => {
  let [calls, running, most] = [0, 0, 0];
  await using gateway = await started((api) =>
    api.schedules.every('tick', { everyMs: 1_000 }, async () => {
      calls += 1;
      running += 1;
      most = Math.max(most, running);
      if (calls === 1) await new Promise((resolve) => setTimeout(resolve, 1_500));
      running -= 1;
      if (calls === 2) throw new Error('no tide');
    }),
  );
  const { parley } = gateway;
  await expect.poll(() => calls).toBeGreaterThanOrEqual(3);
  expect(most).toBe(1);
  expect(parley.problems()).toEqual([expect.stringContaining('schedule "tick": no tide')]);
});

it('serves a webhook to anybody with the bytes as they were sent, and other routes only to the owner', async () => {
  await using gateway = await started((api) => {
    api.routes.register({
      method: 'POST',
      path: 'webhook/note',
      handle: ({ body, headers }) => ({
        status: 202,
        body: { bytes: String(body), token: headers.authorization ?? null },
      }),
    });
    api.routes.register({ method: 'POST', path: 'note', handle: ({ body }) => ({ body }) });
    api.routes.register({
      method: 'GET',
      path: 'broken',
      handle: () => {
        throw new Error('no luck');
      },
    });
  });
  const { parley } = gateway;
  const post = { method: 'POST', body: { a: 1 } } as const;
  const hook = await parley.request('webhook/note', { ...post, token: false });
  expect(hook).toEqual({ status: 202, text: '{"bytes":"{\\"a\\":1}","token":null}' });
  expect((await parley.request('note', { ...post, token: false })).status).toBe(401);
  expect(await parley.request('note', post)).toEqual({ status: 200, text: '{"a":1}' });
  expect((await parley.request('webhook/note')).status).toBe(404);
  expect((await parley.request('broken')).status).toBe(500);
  expect(parley.problems()).toEqual([expect.stringContaining('route broken: no luck')]);
});

it('says what is wrong with a command that returns a text', async () => {
  await using gateway = await started(({ commands }) => {
    commands.register({ name: 'roll', description: 'Rolls a die', run: (() => '6') as never });
  });
  const { parley } = gateway;
  expect(await parley.say('/roll')).toEqual(['“/roll” failed. My owner can see why in the log.']);
  expect(parley.problems()[0]).toMatch(/command \/roll.*return \{ say \}/);
});

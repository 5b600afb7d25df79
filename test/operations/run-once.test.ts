import { expect, it } from 'vitest';
import { z } from 'zod';
import type { GatewayDeps } from '../../src/operations/list.ts';
import { operation, Refusal, type StoreDeps } from '../../src/operations/operation.ts';
import { runOperation } from '../../src/operations/run-once.ts';
import { addToken } from '../../src/operations/tokens.ts';
import { keyedWrite } from '../../src/steps.ts';
import type { Store } from '../../src/store/base/command.ts';
import { keepAnswer } from '../../src/store/rows/operation-calls.ts';
import { commitPluginData, pluginOps, readPluginValue } from '../../src/store/rows/plugin-data.ts';
import { unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';

/** Writes a value, whose version then tells how often it was written. */
const writeValue = operation({
  name: 'test/write',
  method: 'POST',
  right: 'owner',
  summary: 'Writes a value',
  input: z.strictObject({ name: z.string(), value: z.string() }),
  answer: z.object({ at: z.string() }),
  run: async ({ store }: StoreDeps, { name, value }) => {
    if (value === '') return new Refusal('not_possible', 'There is nothing to write.');
    const ops = pluginOps([{ kind: 'put', key: name, value }]);
    await store.write(commitPluginData, { plugin: 'test', ops });
    return { at: crypto.randomUUID() };
  },
});

describeEachDatabase('an operation with an idempotency key', (open, beside) => {
  const callWith =
    (store: Pick<Store, 'read' | 'write'>, one: typeof writeValue | typeof addToken = writeValue) =>
    (input: object, key: string, by = 'token:ann') =>
      runOperation(one as never, {
        deps: { store, keyedWrite } as unknown as GatewayDeps,
        ...{ input, key },
        caller: { by, signIn: undefined, signal: new AbortController().signal },
      });
  const versionOf = async (name: string) =>
    (await open().read(readPluginValue, { plugin: 'test', key: name }))?.version;

  it('calls an operation once, however many requests arrive together, and repeats its answer', async () => {
    const [input, key] = [{ name: unique('value'), value: 'a' }, unique('key')];
    const call = callWith(open());
    await Promise.all(Array.from({ length: 8 }, () => call(input, key)));
    expect(await versionOf(input.name)).toBe(1);
    const answer = await call(input, key);
    expect(await call(input, key)).toEqual(answer);
    expect(await versionOf(input.name)).toBe(1);
    await call(input, unique('key'));
    expect(await versionOf(input.name)).toBe(2);
  });

  it('refuses another call under the same key, but not another caller’s', async () => {
    const [input, key] = [{ name: unique('value'), value: 'a' }, unique('key')];
    const call = callWith(open());
    await call(input, key);
    for (const other of [
      { ...input, value: 'b' },
      { ...input, name: unique('value') },
    ])
      expect(await call(other, key)).toMatchObject({ code: 'key_reused' });
    expect(await versionOf(input.name)).toBe(1);
    await call(input, key, 'token:bob');
    expect(await versionOf(input.name)).toBe(2);
  });

  it('does one of two different calls that arrive together under one key', async () => {
    const [name, key] = [unique('value'), unique('key')];
    const call = callWith(open());
    const answers = await Promise.all(['a', 'b'].map((value) => call({ name, value }, key)));
    expect(answers.filter((answer) => answer instanceof Refusal)).toMatchObject([{ code: 'key_reused' }]);
    expect(await versionOf(name)).toBe(1);
  });

  it('calls an operation once although the process was killed before its answer was stored', async () => {
    const [input, key] = [{ name: unique('value'), value: 'a' }, unique('key')];
    const killed = new Error('killed');
    const write: Store['write'] = (step, value) =>
      step.name === keepAnswer.name ? Promise.reject(killed) : open().write(step, value);
    await expect(callWith({ read: open().read, write })(input, key)).rejects.toBe(killed);
    expect(await callWith(open())(input, key)).toMatchObject({ at: expect.any(String) });
    expect(await versionOf(input.name)).toBe(1);
  });

  it('keeps no refusal, since its reason may be gone', async () => {
    const [name, key] = [unique('value'), unique('key')];
    const call = callWith(open());
    expect(await call({ name, value: '' }, key)).toMatchObject({ code: 'not_possible' });
    expect(await call({ name, value: 'a' }, key)).toMatchObject({ at: expect.any(String) });
  });

  it('gives a secret in one answer only, and stores it nowhere', async () => {
    const [form, key] = [{ name: unique('token'), scopes: ['read'] }, unique('key')];
    const call = callWith(open(), addToken);
    const answers = await Promise.all([call(form, key), call(form, key)]);
    answers.push(await call(form, key));
    const secrets = answers.filter((answer) => !(answer instanceof Refusal));
    expect(secrets).toMatchObject([{ secret: expect.stringMatching(/^parley_/) }]);
    const rows = await open().read(
      {
        query: 'all operation calls',
        run: ({ db }) => db.selectFrom('operationCalls').selectAll().execute(),
      },
      {},
    );
    expect(JSON.stringify(rows)).not.toContain('parley_');
  });

  it('forgets calls after a week', async () => {
    const [input, key] = [{ name: unique('value'), value: 'a' }, unique('key')];
    const call = callWith(open());
    await call(input, key);
    const eightDays = 8 * 86_400_000;
    await beside.sql(`update "operationCalls" set "createdAt" = "createdAt" - ${eightDays}`);
    await call({ ...input, name: unique('value') }, unique('key'));
    await call(input, key);
    expect(await versionOf(input.name)).toBe(2);
  });
});

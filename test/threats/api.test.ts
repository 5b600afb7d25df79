/**
 * Threat 18 at the API: whatever a program sends to any call of the OpenAPI document, the gateway answers in the call's own
 * shape, keeps running, and can say what became of everything that it accepted.
 */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { findBreaches, readStore } from '../e2e/conservation.ts';
import { pageToken } from '../e2e/page-state.ts';
import { openStage } from '../e2e/stage.ts';
import { until } from '../e2e/until.ts';
import { isLong } from '../support/long-run.ts';

type Schema = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly contentEncoding?: string;
};
type Described = {
  readonly parameters: readonly { readonly in: string; readonly name?: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
};
type Description = { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> };

const requests = isLong ? 100_000 : 2_000;

const awkward = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.constantFrom<unknown>(
    ...['', '\u0000', '\ud800', '\u202e', '%00', '../../token', '__proto__', "'; drop table inbox; --"],
    ...['x'.repeat(3_000), 'main', 'main:main:*:dm:owner', -1, 0, 1e308, 2 ** 53, true, null, [], {}],
  ),
);

/** What a schema accepts, mostly: a tenth of the values are anything. */
function valueFor(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  const fitting = fittingOf(schema, depth);
  return fc.oneof({ weight: 9, arbitrary: fitting }, { weight: 1, arbitrary: awkward });
}

function fittingOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const either = schema.anyOf ?? schema.oneOf;
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (either) return fc.oneof(...either.map((one) => valueFor(one, depth + 1)));
  if (depth > 5) return awkward;
  if (schema.items) return fc.array(valueFor(schema.items, depth + 1), { maxLength: 3 });
  if (schema.properties) {
    return recordOf(schema.properties, schema.required ?? [], depth + 1);
  }
  if (schema.type === 'integer' || schema.type === 'number') return fc.integer(boundsOf(schema));
  if (schema.type === 'boolean') return fc.boolean();
  if (schema.contentEncoding === 'base64') return fc.base64String({ maxLength: 40 });
  return fc.oneof(fc.string({ unit: 'grapheme', maxLength: 40 }), awkward.map(asText));
}

function boundsOf({ minimum = -10, maximum = 1_000 }: Schema) {
  const min = Math.max(-10, minimum);
  return { min, max: Math.max(min, Math.min(1_000, maximum)) };
}

/** What exists, so that not every request is about nothing. */
const realNames: Readonly<Record<string, string>> = {
  ...{ agent: 'main', model: 'main', session: 'main:*:*:dm:owner' },
  ...{ channel: 'web', conversation: 'main' },
};

function recordOf(
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[],
  depth: number,
): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const members = Object.entries(properties).map(([name, one]) => {
    const real = realNames[name];
    const made = valueFor(one, depth);
    return [name, real === undefined ? made : fc.oneof(fc.constant(real), made)] as const;
  });
  const model: Record<string, fc.Arbitrary<unknown>> = Object.fromEntries(members);
  return fc.record(model, { requiredKeys: [...required] });
}

type Asked = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** Makes requests for one call: its parameters and body as described or not, whole or cut, with and without a token. */
function requestsOf([path, method, call]: readonly [string, string, Described]): fc.Arbitrary<Asked> {
  const valuesFor = (place: string) => {
    const own = call.parameters.filter((one) => one.in === place && one.name !== undefined);
    const properties = Object.fromEntries(own.map(({ name = '', schema }) => [name, schema]));
    return recordOf(properties, place === 'path' ? Object.keys(properties) : [], 0);
  };
  const [content] = Object.values(call.requestBody?.content ?? {});
  const json = content
    ? valueFor(content.schema).map((value) => JSON.stringify(value) ?? '')
    : fc.constant('{}');
  const broken = fc.oneof(
    fc.constantFrom(
      '',
      '{',
      '[',
      'null',
      '"',
      '['.repeat(5_000),
      '{"__proto__":{"isOwner":true}}',
      '\ufeff{}',
    ),
    fc.tuple(json, fc.nat(40)).map(([text, cut]) => text.slice(0, cut)),
    fc.string({ unit: 'binary' }),
  );
  return fc
    .record({
      inPath: valuesFor('path'),
      inQuery: valuesFor('query'),
      text: fc.oneof({ weight: 8, arbitrary: json }, { weight: 1, arbitrary: broken }),
      token: fc.oneof(
        { weight: 12, arbitrary: fc.constant(`Bearer ${pageToken}`) },
        { weight: 1, arbitrary: fc.constantFrom('Bearer wrong', 'Basic eDp5', 'Bearer', '') },
      ),
      key: fc.option(fc.constantFrom('a', 'b', 'c', 'x'.repeat(300)), { nil: undefined, freq: 3 }),
      type: fc.constantFrom(
        'application/json',
        'application/json',
        'application/json',
        'text/plain',
        'multipart/x',
      ),
    })
    .map(({ inPath, inQuery, text, token, key, type }) => {
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(safe(inPath[name])));
      const query = Object.entries(inQuery).map(
        ([name, value]) => `${name}=${encodeURIComponent(safe(value))}`,
      );
      return {
        method: method.toUpperCase(),
        path: query.length > 0 ? `${filled}?${query.join('&')}` : filled,
        headers: {
          ...{ authorization: token, 'x-parley': '1' },
          ...(key !== undefined && { 'idempotency-key': key }),
          ...(method === 'post' && { 'content-type': type }),
        },
        ...(method === 'post' && { body: text }),
      };
    });
}

/** Half a surrogate pair can't be written into an address. */
const safe = (value: unknown) => asText(value).toWellFormed();

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

type Answer = { readonly status: number; readonly body: string };

/** Sends it; an answer that streams, or waits for something to happen, is given up after a moment. */
function send(port: string, { method, path, headers, body }: Asked): Promise<Answer | 'open'> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk) => (text += chunk));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: text }));
      answer.on('error', reject);
    });
    sent.setTimeout(200, () => {
      resolve('open');
      sent.destroy();
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

it('answers any request to any call of the API in its own shape, and accounts for all that it accepted', {
  timeout: 3_600_000,
}, async () => {
  const stage = await openStage({ networks: ['web'] }, onTestFinished);
  const { url, ended } = await stage.start();
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  const { port } = new URL(url);
  const described = await fetch(`${url}/openapi.json`, { headers: { authorization: `Bearer ${pageToken}` } });
  const { paths } = (await described.json()) as Description;
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, call]) => [path, method, call] as const),
  );
  expect(calls.length).toBeGreaterThan(50);
  // Few of its many shapes are accepted.
  const weightOf = (path: string) => (path === '/api/agent' ? 10 : 1);
  const any = fc.oneof(...calls.map((call) => ({ weight: weightOf(call[0]), arbitrary: requestsOf(call) })));
  const accepted: string[] = [];
  const statuses = new Map<number, number>();
  const seed = Date.now();
  for (const [at, asked] of fc.sample(any, { numRuns: requests, seed }).entries()) {
    const answer = await send(port, asked);
    if (answer === 'open') continue;
    const shown = `request ${at} of seed ${seed}: ${JSON.stringify(asked)} → ${JSON.stringify(answer)}`;
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    expect(answer.status, shown).toBeLessThan(500);
    if (answer.status >= 400)
      expect(parsed(answer.body), shown).toMatchObject({ error: { code: expect.anything() } });
    if (answer.status === 200 && asked.path === '/api/agent') accepted.push(JSON.parse(answer.body).runId);
  }
  console.log(`${requests} requests:`, Object.fromEntries([...statuses].toSorted()));
  expect(hasEnded).toBe(false);
  expect(accepted).not.toEqual([]);
  await untilQuiet(stage.dataDir);
  expect(findBreaches(stage.dataDir)).toEqual([]);
  const log = readFileSync(join(stage.dataDir, 'test.log'), 'utf8');
  expect(log).not.toMatch(/unhandled|uncaught|TypeError|RangeError|SyntaxError/i);
});

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Waits until everything accepted has ended. */
async function untilQuiet(dataDir: string): Promise<void> {
  const open = () => readStore(dataDir, `select id from inbox where state <> 'ended'`);
  await until(() => open().length === 0, { what: 'the gateway at rest' });
}

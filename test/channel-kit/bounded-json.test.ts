import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boundProblem, readJson, textBound } from '#channel-kit/bounded-json.ts';
import { jsonProblem } from '#channel-kit/json-guard.ts';
import { createYielder } from '#channel-kit/take-turns.ts';
import { UnparsedJson } from '#channel-kit/unparsed-json.ts';
import { absurdJson } from '../support/absurd-json.ts';
import { holds } from '../support/holds.ts';
import { watchParsing } from '../support/watch-parsing.ts';

/** Cuts the text into pieces of these lengths, used in rotation. */
function cut(text: string, lengths: readonly number[]): readonly Buffer[] {
  const bytes = Buffer.from(text);
  const pieces: Buffer[] = [];
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const length = lengths[index % lengths.length] ?? 1;
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

const inOne = (text: string) => [Buffer.from(text)];
const lengths = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 });

describe('JSON within the bound', () => {
  it('reads a reply as JSON.parse does, in any pieces', async () => {
    const spaces = fc.constantFrom(undefined, 1);
    const property = fc.asyncProperty(fc.jsonValue(), spaces, lengths, async (value, space, pieces) => {
      const text = JSON.stringify(value, null, space);
      expect(JSON.stringify(await readJson(cut(text, pieces)))).toBe(JSON.stringify(JSON.parse(text)));
    });
    await holds(property, { numRuns: 20_000, interruptAfterTimeLimit: 1_500 });
  });

  it.each(['', '[', '[1,]', '[,]', '[1 2]', '{"a":[}', '[[1]', '{"a":[1]', ']', 'no'])(
    'refuses invalid JSON: %s',
    async (text) => {
      await expect(readJson(inOne(text))).rejects.toThrow(SyntaxError);
    },
  );
});

describe.each(absurdJson)('%s', (_, absurd) => {
  it.each([
    ['[', ']', (read: unknown) => read],
    ['{"ok":true,"result":[', ']}', (read: unknown) => (read as { readonly result: unknown }).result],
  ])('leaves only the oversized element of a list unparsed: %s', async (begin, end, listOf) => {
    const most = watchParsing();
    const text = `${begin}{"id":1},{"deep":{"id":8},"body":${absurd},"id":"2"},{"id":3}${end}`;
    const list = listOf(await readJson(cut(text, [65_536])));
    expect(list).toEqual([{ id: 1 }, expect.any(UnparsedJson), { id: 3 }]);
    const [, unparsed] = list as readonly [unknown, UnparsedJson, unknown];
    expect(unparsed.fields).toEqual({ id: '2' });
    expect(jsonProblem(unparsed)).toBe(unparsed.problem);
    expect(JSON.stringify(unparsed)).toContain('{\\"deep\\":{\\"id\\":8}');
    expect(JSON.stringify(unparsed).length).toBeLessThan(40_000);
    expect(most.bytes).toBeLessThanOrEqual(textBound.bytes);
    expect(most.marks).toBeLessThanOrEqual(textBound.marks);
  });

  it('refuses a reply that is nothing but an oversized value', async () => {
    await expect(readJson(inOne(`{"ok":true,"result":{"body":${absurd}}}`))).rejects.toThrow(
      expect.objectContaining({ name: 'RangeError', code: 'ERR_REPLY_TOO_LARGE' }),
    );
  });
});

it('stops reading a reply that never ends', async () => {
  let sent = 0;
  async function* endless() {
    yield Buffer.from('[{"id":1,"text":"');
    for (const chunk = Buffer.alloc(1024 * 1024, 'x'); ; sent += chunk.length) yield chunk;
  }
  await expect(readJson(endless())).rejects.toThrow('the reply is too large');
  expect(sent).toBeLessThan(40 * 1024 * 1024);
});

it('stops at a list that never ends, and keeps its elements if asked', async () => {
  const many = `{"ok":true,"result":[${'{"update_id":1},'.repeat(10_001)}{"update_id":2,"text":"`;
  await expect(readJson(inOne(many))).rejects.toThrow('the reply is too large');
  const read = (await readJson(inOne(many), { isEndlessKept: true })) as { readonly result: unknown[] };
  expect(read.result.slice(0, -1)).toEqual(Array(10_001).fill({ update_id: 1 }));
  expect(read.result.at(-1)).toMatchObject({ fields: { update_id: 2 } });
});

it('judges text in memory by its length and values, not by its strings', () => {
  expect(boundProblem(`"${',['.repeat(textBound.marks)}"`)).toBeUndefined();
  expect(boundProblem(`[${'1,'.repeat(textBound.marks)}1]`)).toBe(`more than ${textBound.marks} values`);
  expect(boundProblem('x'.repeat(textBound.bytes + 1))).toBe(`longer than ${textBound.bytes} bytes`);
});

it('tells two long texts apart that begin alike', () => {
  const [one, other] = ['1', '2'].map((end) => UnparsedJson.of(`["${'x'.repeat(20_000)}${end}"]`, 'long'));
  expect(JSON.stringify(one)).not.toBe(JSON.stringify(other));
});

it('finds the fields of a nested object among any others', () => {
  const body = '"mentions":[{"id":"9"},"]"],"author":{"id":"8"},"id":"7","name":"\\"é","n":-1.5e3,"is":true';
  const text = `{"t":"MESSAGE_CREATE","s":5,"op":0,"d":{${body},"none":null}}`;
  expect(UnparsedJson.of(text, 'long').fields).toEqual({ t: 'MESSAGE_CREATE', s: 5, op: 0 });
  expect(UnparsedJson.of(text, 'long', 2).fields).toEqual({ id: '7', n: -1500, is: true, none: null });
});

it('reads only the first of endless fields', () => {
  const most = watchParsing();
  const text = `{"update_id":7,${Array.from({ length: 100_000 }, (_, at) => `"${at}":1`).join()}}`;
  const { fields } = UnparsedJson.of(text, 'long');
  expect(fields).toMatchObject({ update_id: 7 });
  expect(Object.keys(fields).length).toBeLessThan(1_000);
  expect(most.times).toBeLessThan(2_000);
});

it('lets others take turns whenever reading has taken long enough', async () => {
  let now = 0;
  let turns = 0;
  const turn = createYielder(() => now);
  for (let piece = 0; piece < 10; piece += 1) {
    void nextTurn().then(() => {
      turns += 1;
    });
    now += 5;
    await turn();
  }
  expect(turns).toBe(10);
});

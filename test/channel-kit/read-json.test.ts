import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { longestJson, OversizedJson, oversizedIn, readJson } from '#channel-kit/read-json.ts';
import { holds } from '../support/holds.ts';

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

const lengths = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 });

it('reads a reply as JSON.parse does, in any pieces', async () => {
  const property = fc.asyncProperty(fc.jsonValue(), lengths, async (value, pieces) => {
    const text = JSON.stringify(value);
    expect(JSON.stringify(await readJson(cut(text, pieces)))).toBe(text);
  });
  await holds(property, { numRuns: 20_000, interruptAfterTimeLimit: 1_500 });
});

it('stops reading a reply that never ends, and keeps its beginning', async () => {
  let sent = 0;
  async function* endless() {
    yield Buffer.from('[{"id":1,"text":"');
    for (const chunk = Buffer.alloc(65_536, 'x'); ; sent += chunk.length) yield chunk;
  }
  const error: unknown = await readJson(endless()).catch((thrown: unknown) => thrown);
  expect(sent).toBeLessThanOrEqual(longestJson);
  const oversized = oversizedIn(new Error('the call failed', { cause: error }));
  expect(oversized?.message).toBe(`longer than ${longestJson} bytes`);
  expect(oversized?.text).toMatch(/^\[\{"id":1,/);
  expect(JSON.stringify(oversized).length).toBeLessThan(40_000);
  expect(inspect(oversized).length).toBeLessThan(4_000);
});

it('tells two long texts apart that begin alike', () => {
  const [one, other] = ['1', '2'].map((end) => new OversizedJson(`["${'x'.repeat(20_000)}${end}"]`));
  expect(JSON.stringify(one)).not.toBe(JSON.stringify(other));
});

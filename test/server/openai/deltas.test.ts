import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Deltas } from '../../../src/server/openai/deltas.ts';

/** Takes a message as it grows by one character at a time. */
function write(deltas: Deltas, text: string): string {
  return Array.from({ length: text.length }, (_, at) => deltas.take(text.slice(0, at + 1))).join('');
}

it('appends each message once, after an empty line, and completes what was missed', () => {
  const text = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
    .filter((one) => one.trim() !== '');
  fc.assert(
    fc.property(fc.array(text, { maxLength: 3 }), text, fc.nat(20), (before, answer, missed) => {
      const deltas = new Deltas();
      let shown = '';
      for (const message of before) shown += write(deltas, message) + deltas.take('');
      shown += write(deltas, answer.slice(0, Math.max(0, answer.length - missed)));
      shown += deltas.finish(answer);
      expect(shown.trimEnd()).toBe([...before, answer].join('\n\n').trimEnd());
      expect(shown.isWellFormed()).toBe(true);
    }),
  );
});

it('keeps half of a character back until the other half is there', () => {
  const deltas = new Deltas();
  expect(deltas.take('a\ud83d')).toBe('a');
  expect(deltas.take('a\ud83d\ude00')).toBe('\ud83d\ude00');
});

it('adds nothing when the answer is what was streamed, less its trailing space', () => {
  const deltas = new Deltas();
  deltas.take('done. ');
  expect(deltas.finish('done.')).toBe('');
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePattern } from '../../src/config/text-pattern.ts';
import { type MentionGate, passesMentionGate } from '../../src/inbound/mention-gate.ts';
import { growthOf } from '../growth/measure.ts';
import { isLong } from '../support/long-run.ts';
import { countTurns, holdLoop } from '../support/loop-turns.ts';
import { openOwnStore } from '../support/own-store.ts';
import { anAccount, anEnvelope, createIntakeFixture } from './support/intake-fixture.ts';

function aMessage(changes: Partial<Parameters<typeof passesMentionGate>[0]> = {}) {
  return { text: 'hello', provenance: 'typed', mentionsBot: false, repliesToBot: false, ...changes } as const;
}

function aGate(changes: Partial<MentionGate> = {}): MentionGate {
  return { requireMention: true, patterns: [compilePattern('\\bparley\\b')], ...changes };
}

const store = openOwnStore();

it('yields between two messages of a batch', async () => {
  const turns = countTurns();
  const seen = new Set<number>();
  const find = () => {
    seen.add(turns.now());
    holdLoop();
    return undefined;
  };
  const pattern = { source: 'slow', size: 1, find };
  const town = createIntakeFixture(store(), { config: { mentionMatchers: [pattern] } });
  const ann = anAccount('alpha');
  const batch = Array.from({ length: 10 }, () => anEnvelope(ann, 'hello', { group: '-1' }));
  await town.accept(ann, batch);
  turns.end();
  expect(seen.size).toBe(batch.length);
});

describe('the mention gate', () => {
  it.each([
    ['a native mention', { mentionsBot: true }],
    ['a reply to the bot', { repliesToBot: true }],
    ['a configured pattern, in any case', { text: 'Hey PARLEY, what now?' }],
  ])('passes %s', (_, message) => {
    expect(passesMentionGate(aMessage(message), aGate())).toBe(true);
  });

  it("holds back messages that don't call the agent", () => {
    expect(passesMentionGate(aMessage({ text: 'the parleying went on' }), aGate())).toBe(false);
    expect(passesMentionGate(aMessage(), aGate({ patterns: [] }))).toBe(false);
  });

  it("ignores mentions in words that aren't the sender's own, but not their reply", () => {
    const forwarded = { provenance: 'forwarded', text: 'Parley, come here' } as const;
    expect(passesMentionGate(aMessage({ ...forwarded, mentionsBot: true }), aGate())).toBe(false);
    expect(passesMentionGate(aMessage({ ...forwarded, repliesToBot: true }), aGate())).toBe(true);
  });

  it.each([
    [true, undefined, false],
    [false, undefined, true],
    [true, 'always', true],
    [false, 'mention', false],
  ] as const)(
    'lets requireMention %s and /activation %s decide %s for an ordinary message',
    (requireMention, activation, passes) => {
      expect(passesMentionGate(aMessage(), aGate({ requireMention, activation }))).toBe(passes);
    },
  );

  it('keeps the event loop free whatever pattern the operator wrote (threat 13)', () => {
    const counted = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 9, max: 999 }));
    const atom = fc.constantFrom(
      'a',
      '.',
      '\\w',
      '[a-z]',
      '(a|a)',
      '(a|aa)',
      '(?:a?)',
      '(a*)',
      'x',
      '\\pL',
      '(^|a)',
    );
    const evil = fc
      .array(
        fc.tuple(
          atom,
          fc.oneof(
            fc.constantFrom('+', '*', '+?', '?', ''),
            counted.map(([min, max]) => `{${min},${max}}`),
          ),
        ),
        { minLength: 1, maxLength: 5 },
      )
      .chain((atoms) => {
        const body = atoms.map(([what, times]) => what + times).join('');
        return fc.constantFrom(
          `(${body})+$`,
          `^(${body})*b`,
          `(.*${body}){9}c`,
          `((${body})+)+\\d`,
          `(${body}){1,31}!`,
        );
      });
    const sources: string[] = fc.sample(evil, { numRuns: isLong ? 3000 : 100, seed: 13 });
    sources.push(
      '^(a+)+$',
      '([a-z]+)*\\d',
      '(.*a){20}',
      '(a{1,31}){1,31}b',
      '.{0,1000}b',
      '((a{0,30}){0,30})$',
    );
    const patterns = sources.flatMap((source) => {
      try {
        return [compilePattern(source)];
      } catch {
        // Rejected at startup, which is the other good outcome.
        return [];
      }
    });
    expect(patterns.length).toBeGreaterThan(sources.length / 10);
    const match = (text: string) => {
      for (const pattern of patterns) passesMentionGate(aMessage({ text }), aGate({ patterns: [pattern] }));
    };
    for (const [unit, end] of [
      ['a', ''],
      ['ax ', ''],
      ['a', '!'],
    ] as const)
      expect(
        growthOf({ run: match, textOf: (length) => `${unit.repeat(length / unit.length)}${end}` }, 2048).kind,
      ).not.toBe('steep');
    // Only the start of a text this long is searched.
    match('ä'.repeat(100_000));
  });

  it.each([
    ['(a', 'missing closing )'],
    ['(?=a)', '(?='],
    ['(a)\\1', 'invalid escape'],
    ['', 'empty'],
    ['a*', 'matches the empty text'],
    ['(a{1,31}){1,31}b', 'too large'],
  ])('rejects the pattern %j and says why', (source, reason) => {
    expect(() => compilePattern(source)).toThrow(reason);
  });
});

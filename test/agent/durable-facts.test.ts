import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  changeFacts,
  type FactChanges,
  parseSummary,
  readSummary,
  summaryParts,
} from '../../src/agent/compaction-text.ts';
import { transcriptId } from '../../src/contracts/ids.ts';
import { holds } from '../support/holds.ts';

const none = { added: [], dropped: new Set<number>() };

describe('the answer to a summary request', () => {
  it.each([
    ['names no facts', 'They met.', 'They met.', none],
    [
      'adds and drops facts',
      'They met.\n<facts>\n+ Anna lives in  Rome.\n- 2\n-  11 is wrong\nno change\n</facts>\n',
      'They met.',
      { added: ['Anna lives in Rome.'], dropped: new Set([2, 11]) },
    ],
    [
      'is cut off within a line',
      'They met.\n<facts>\n+ Anna has a boat.\n+ Anna lives in Ro',
      'They met.',
      { added: ['Anna has a boat.'], dropped: new Set<number>() },
    ],
    [
      'puts the facts first',
      '<facts>\n+ Anna has a boat.\n</facts>\nThey met.',
      'They met.',
      { added: ['Anna has a boat.'], dropped: new Set<number>() },
    ],
    [
      'quotes the facts tag',
      'A <facts> tag.\n<facts>\n- 1\n</facts>',
      'A <facts> tag.',
      { ...none, dropped: new Set([1]) },
    ],
  ])('splits an answer that %s into summary and changes', (_what, answer, summary, changes) => {
    expect(parseSummary(answer)).toEqual({ summary, changes });
  });
});

const fact = fc
  .string({ minLength: 1, maxLength: 30 })
  .map((text) => parseSummary(`<facts>\n+${text}\n</facts>`));
const facts = fc.array(fact, { maxLength: 8 }).map((all) => all.flatMap(({ changes }) => changes.added));
const changes: fc.Arbitrary<FactChanges> = fc
  .tuple(facts, fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 3 }))
  .map(([added, dropped]) => ({ added, dropped: new Set(dropped) }));
const budget = { numRuns: 1_000, interruptAfterTimeLimit: 1_000 };

describe('the list of facts', () => {
  it('drops only the facts named, however full the list is', () => {
    holds(
      fc.property(fc.array(changes, { maxLength: 12 }), fc.integer({ min: 0, max: 200 }), (all, units) => {
        let known: readonly string[] = [];
        for (const each of all) {
          const kept = known.filter((_, index) => !each.dropped.has(index + 1));
          known = changeFacts(known, each, units);
          expect(known.slice(0, kept.length)).toEqual(kept);
          expect(new Set(known.map((one) => one.toLowerCase())).size).toBe(known.length);
          expect(known.map((one) => `- ${one}\n`).join('').length).toBeLessThanOrEqual(units);
        }
      }),
      budget,
    );
  });

  it('reads back the facts and the summary as stored', () => {
    const summary = fc.record({ text: fc.string({ minLength: 1 }).map((text) => text.trim()), facts });
    holds(
      fc.property(summary, (given) => {
        const parts = summaryParts({ ...given, lost: [] });
        const stored = { id: transcriptId('s'), role: 'user' as const, parts, createdAt: 1 };
        expect(readSummary(stored)).toEqual(given);
      }),
      budget,
    );
  });
});

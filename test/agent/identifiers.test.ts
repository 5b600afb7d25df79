import { describe, expect, it } from 'vitest';
import { identifiersIn, lostIdentifiers, slicesOf } from '../../src/agent/compaction-text.ts';
import type { AgentMessage } from '../../src/contracts/message.ts';
import { countTurns } from '../support/loop-turns.ts';
import { userSays } from './support/builders.ts';

describe('identifiers', () => {
  it.each([
    ['see https://example.org/a?b=c#d, please.', ['https://example.org/a?b=c#d']],
    ['open `src/main.ts` and /etc/hosts and ~/notes', ['src/main.ts', '/etc/hosts', '~/notes']],
    [
      'ticket ORD-2291 (run 0192f3a1-77aa-7bbb-8ccc-9dddeeeeffff)',
      ['ORD-2291', '0192f3a1-77aa-7bbb-8ccc-9dddeeeeffff'],
    ],
    ['mail anna@example.org about **v1.2.3**', ['v1.2.3']],
    ['either and/or both, at 10:30, for 25 people', []],
    ['call +351912345678 twice', ['+351912345678']],
  ])('finds the identifiers in “%s”', (text, found) => {
    expect(identifiersIn(text)).toEqual(found);
  });

  it('lists the identifiers that a summary lacks, newest first, results last, within the limit', async () => {
    const result: AgentMessage = {
      ...userSays('r', ''),
      role: 'tool',
      parts: [
        {
          type: 'tool_result',
          data: { tool_call_id: 'c', name: 'list', content: '/tmp/x1', is_error: false },
        },
      ],
    };
    const messages = [userSays('1', 'first ID-00001'), result, userSays('2', 'then ID-00002 and ID-00003')];
    const of = { earlier: 'known ID-00000', summary: 'all about ID-00003', units: 1_000 };
    expect(await lostIdentifiers(messages, of)).toEqual(['ID-00002', 'ID-00001', 'ID-00000', '/tmp/x1']);
    expect(await lostIdentifiers(messages, { ...of, units: 25 })).toEqual(['ID-00002', 'ID-00001']);
  });

  it('scans a long history in slices and yields between them', async () => {
    const messages = Array.from({ length: 40 }, (_, index) => userSays(String(index), 'x '.repeat(100_000)));
    const turns = countTurns();
    await lostIdentifiers(messages, { earlier: '', summary: '', units: 100 });
    expect(turns.end()).toBeGreaterThan(2);
  });
});

describe('slices of a history to be summarized', () => {
  it('splits a history into slices that contain every word once, in order', () => {
    const messages = Array.from({ length: 40 }, (_, index) =>
      userSays(String(index), `<${index}> ${'x'.repeat(index * 300)}`),
    );
    const slices = slicesOf(messages, 1_000);
    expect(Math.max(...slices.map(({ length }) => length))).toBeLessThanOrEqual(3_100);
    const marks = [...slices.join('').matchAll(/<(\d+)>/g)].map(([, number]) => Number(number));
    expect(marks).toEqual(messages.map((_, index) => index));
    expect(slicesOf([], 1_000)).toEqual([]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MessagePart } from '#contracts/message.ts';
import { maxResultBytes, resultTextOf } from '../../src/store/children/read-result.ts';

const said = (text: string) => ({
  role: 'assistant',
  parts: [{ type: 'text', data: { text } }] satisfies readonly MessagePart[],
});
const called = (id: string) => ({
  role: 'assistant',
  parts: [
    { type: 'tool_call', data: { id, name: 'read', input: '{}', finished: true } },
  ] satisfies readonly MessagePart[],
});
const returned = (content: string, name = 'read') => ({
  role: 'tool',
  parts: [
    { type: 'tool_result', data: { tool_call_id: '1', name, content, is_error: false } },
  ] satisfies readonly MessagePart[],
});
const task = { role: 'user', parts: said('Count to three.').parts };

describe('the result of a sub-agent', () => {
  it.each([
    ['its last text', [task, said('one'), called('1'), returned('file'), said('two')], 'two'],
    ['the last text that says something', [task, said('one'), said(' \n')], 'one'],
    ['a text over a chosen silence', [task, said('one'), said('*NO_REPLY*')], 'one'],
    ['a text over a later tool result', [task, said('one'), called('1'), returned('file')], 'one'],
    ['its last tool result if it wrote nothing', [task, called('1'), returned('a'), returned('b')], 'b'],
    [
      'no note that it has started or listed sub-agents',
      [
        task,
        returned('a'),
        returned('{"status":"accepted"}', 'sessions_spawn'),
        returned('[]', 'subagents'),
        returned('{}', 'delegate'),
        returned('[]', 'tasks'),
      ],
      'a',
    ],
    [
      'what its own sub-agent found, if it waited for that one',
      [task, returned('[Sub-agent one: completed]', 'sessions_spawn')],
      '[Sub-agent one: completed]',
    ],
    ['nothing if there is neither, because the task is not a result', [task], ''],
  ])('returns %s', (_, messages, result) => {
    expect(resultTextOf(messages)).toBe(result);
  });

  it('cuts a result at 100 KB in whole, clean characters, and says that it was cut', () => {
    const pieces = fc.array(fc.constantFrom('a', 'é', '猫', '👪', '\ud800', '\u0000'), { maxLength: 60 });
    fc.assert(
      fc.property(pieces, fc.integer({ min: 0, max: 4000 }), (parts, repeats) => {
        const text = `x${parts.join('').repeat(repeats)}x`;
        const result = resultTextOf([said(text)]);
        expect(Buffer.byteLength(result)).toBeLessThanOrEqual(maxResultBytes);
        expect(result.isWellFormed()).toBe(true);
        expect(result).not.toContain('\u0000');
        const isCut = Buffer.byteLength(text.toWellFormed().replaceAll('\u0000', '\ufffd')) > maxResultBytes;
        expect(/\[cut here: the whole text has \d+ bytes, the limit is \d+\]$/.test(result)).toBe(isCut);
      }),
      { numRuns: 100 },
    );
  });
});

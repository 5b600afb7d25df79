import { describe, expect, it } from 'vitest';
import { prettifyError } from 'zod';
import { delegateInputSchema, repairDelegateInput } from '../../src/subagents/delegate-input.ts';

type Raw = Readonly<Record<string, unknown>>;
const node = (over: Raw = {}) => ({ id: 'a', agent: 'clerk', instructions: 'do a', ...over });
const plain = { ...node(), dependsOn: [], onFailure: 'fail' };

/** Returns the subtasks that the arguments ask for, or why they are invalid. */
function read(subtasks: unknown) {
  const parsed = delegateInputSchema.safeParse(repairDelegateInput({ title: 'a task', subtasks }));
  return parsed.success ? parsed.data.subtasks : prettifyError(parsed.error);
}

describe('the arguments of delegate', () => {
  it.each([
    ['as they should be', [node()], [plain]],
    ['a list written as JSON', JSON.stringify([node()]), [plain]],
    ['one subtask instead of a list', node(), [plain]],
    ['one subtask written as JSON', JSON.stringify(node()), [plain]],
    ['one dependency as a text', [node({ dependsOn: 'b' })], [{ ...plain, dependsOn: ['b'] }]],
    ['no dependency as an empty text', [node({ dependsOn: '' })], [plain]],
    ['no dependency as null', [node({ dependsOn: null })], [plain]],
    ['no dependency as a list of nothing', [node({ dependsOn: ['', null] })], [plain]],
    ['dependencies as JSON', [node({ dependsOn: '["b", 3]' })], [{ ...plain, dependsOn: ['b', '3'] }]],
    ['a dependency named twice', [node({ dependsOn: ['b', ' b'] })], [{ ...plain, dependsOn: ['b'] }]],
    [
      'numbers as ids',
      [node({ id: 1, dependsOn: 2 }), node({ id: 2 })],
      [
        { ...plain, id: '1', dependsOn: ['2'] },
        { ...plain, id: '2' },
      ],
    ],
    ['spaces around names', [node({ id: ' a ', agent: 'clerk\n' })], [plain]],
    [
      'instructions as lines',
      [node({ instructions: ['do a', 'and b'] })],
      [{ ...plain, instructions: 'do a\nand b' }],
    ],
    ['null for what is left out', [node({ expected: '', timeoutSeconds: null, onFailure: null })], [plain]],
  ])('reads %s', (_, subtasks, expected) => {
    expect(read(subtasks)).toEqual(expected);
  });

  it.each([
    ['nothing', undefined, 'expected array, received undefined'],
    ['no subtask', [], '>=1 items'],
    ['a list in another language', "[{'id': 'a'}]", 'expected array, received string'],
    ['a list with bullets', '- do a\n- do b', 'expected array, received string'],
    ['half of a list', '[{"id": "a", "agent"', 'expected array, received string'],
    ['JSON in JSON', JSON.stringify(JSON.stringify([node()])), 'expected array, received string'],
    ['a text among subtasks', [node(), 'do b'], 'subtasks[1]'],
    ['1,001 subtasks', Array(1001).fill(node()), '<=1000 items'],
    ['an id with a space', [node({ id: 'Task A' })], 'use up to 40 letters'],
    ['an id with a dot', [node({ id: 't.1' })], 'use up to 40 letters'],
    ['an id that leaves the folder', [node({ id: '../x' })], 'use up to 40 letters'],
    ['an id that is no own name', [node({ id: '__proto__' })], 'use up to 40 letters'],
    ['an id of 41 characters', [node({ id: 'x'.repeat(41) })], 'use up to 40 letters'],
    ['half a number as an id', [node({ id: 1.5 })], 'expected string, received number'],
    ['a number beyond exact ones', [node({ id: 1e21 })], 'expected string, received number'],
    ['a truth value as an id', [node({ id: true })], 'expected string, received boolean'],
    ['a truth value as a dependency', [node({ dependsOn: false })], 'expected array, received boolean'],
    ['an object as a dependency', [node({ dependsOn: { id: 'b' } })], 'expected array, received object'],
    ['instructions as an object', [node({ instructions: { description: 'x' } })], 'received object'],
    ['no instructions', [node({ instructions: ' ' })], 'instructions'],
    ['no agent', [node({ agent: null })], 'agent'],
    [
      'another name of dependsOn',
      [node({ depends_on: ['b'] })],
      'unknown field depends_on; a subtask has id,',
    ],
    ['another name of instructions', [node({ prompt: 'x' })], 'unknown field prompt'],
    ['a state', [node({ status: 'done' })], 'unknown field status'],
    ['subtasks of a subtask', [node({ subtasks: [node()] })], 'unknown field subtasks'],
    ['a policy in capitals', [node({ onFailure: 'Retry' })], '"fail"|"retry"|"skip"'],
    ['a policy with a count', [node({ onFailure: { retry: 2 } })], '"fail"|"retry"|"skip"'],
    ['a time of nothing', [node({ timeoutSeconds: 0 })], '>=1'],
  ])('refuses %s and says what is wrong', (_, subtasks, expected) => {
    expect(read(subtasks)).toContain(expected);
  });

  it('leaves no characters in texts written as JSON that a database refuses', () => {
    const written = '[{"id": "a", "agent": "clerk", "instructions": "do\\u0000 a \\ud800"}]';
    expect(read(written)).toEqual([{ ...plain, instructions: 'do\ufffd a \ufffd' }]);
  });
});

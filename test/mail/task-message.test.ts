import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { formatTaskMail, isTaskMail, parseTaskMail, type TaskMail } from '../../src/mail/task-message.ts';
import { isLong } from '../support/long-run.ts';

const runs = { numRuns: isLong ? 20_000 : 1_000 };
const parse = async (text: string) => {
  const parsed = await parseTaskMail(text);
  return parsed.kind === 'mail' ? parsed.mail : parsed.problem;
};
const withHead = (head: string, body = 'Compare them.') => `---\n${head}\n---\n${body}\n`;
const least = 'type: task\ntask_id: t1';
const task = {
  head: { type: 'task', taskId: 't1', subtaskId: 'main', from: 'human' },
  body: 'Compare them.',
};

describe('a task message', () => {
  const accepted: readonly (readonly [string, string, object?])[] = [
    ['the least head', withHead(least)],
    ['a byte order mark and empty lines before the head', `\ufeff\n \n${withHead(least)}`],
    [
      'CR LF with a quoted value at the end of the head',
      '---\r\ntype: task\r\ntask_id: "t1"\r\n---\r\nCompare them.\r\n',
    ],
    ['no line break after the body', `---\n${least}\n---\nCompare them.`],
    ['spaces behind the lines of the head', `---  \ntype: task \ntask_id: t1\t\n---\t\nCompare them.\n`],
    ['a fence around all of it', `\`\`\`markdown\n${withHead(least)}\`\`\`\n`],
    ['a fence around the head only', `~~~yaml\n---\n${least}\n---\n~~~\nCompare them.\n`],
    ['other spellings of the fields', withHead('Type: task\nTASK-ID: t1\nsubtaskId: main')],
    ['empty values as absent ones', withHead(`${least}\nto:\nfrom: ~\nmode: null\nstatus: ""`)],
    ['an id that YAML takes for a number', withHead('type: task\ntask_id: 007'), { taskId: '007' }],
    [
      'an id of 20 digits',
      withHead('type: task\ntask_id: 12345678901234567890'),
      { taskId: '12345678901234567890' },
    ],
    [
      'an id that YAML takes for a date',
      withHead('type: task\ntask_id: 2026-11-28'),
      { taskId: '2026-11-28' },
    ],
    ['an id that YAML takes for a truth', withHead('type: task\ntask_id: yes'), { taskId: 'yes' }],
    ['an exponent', withHead('type: task\ntask_id: 1e3'), { taskId: '1e3' }],
    [
      'a mode and its addressee',
      withHead(`${least}\nmode: coordinating\nto: research`),
      { mode: 'coordinating', to: 'research' },
    ],
  ];
  it.each(accepted.map(([what, text, over = {}]) => [what, text, over] as const))(
    'accepts %s',
    async (_, text, over) => {
      expect(await parse(text)).toEqual({ ...task, head: { ...task.head, ...over } });
    },
  );

  it('keeps lines --- of the body, and an indented one of the head', async () => {
    const body = 'Compare:\n---\nfirst\n----\nsecond';
    expect(await parse(withHead(least, body))).toEqual({ ...task, body });
    expect(await parse(withHead('type: task\ntask_id: |\n  t1\n  ---'))).toBe(
      '"task_id" must be one line of text',
    );
  });

  const refused: readonly (readonly [what: string, text: string, says: RegExp | string])[] = [
    ['a text without a head', 'Compare them.', /must begin with a line ---/],
    ['a head without an end', `\n---\n${least}\nCompare them.`, /the head that begins on line 2 has no end/],
    ['an unknown type', withHead('type: request\ntask_id: t1'), '"type" must be task or reply'],
    ['no id', withHead('type: task'), /^"task_id" is missing/],
    [
      'an unknown field',
      withHead(`${least}\npriority: high`),
      /unknown field "priority"\. Its fields are: type, task_id/,
    ],
    ['a misspelt field', withHead(`${least}\nsubtaks_id: a`), /"subtaks_id"; do you mean "subtask_id"\?/],
    [
      'two spellings of one field',
      withHead(`${least}\ntaskId: t2`),
      'the head has "task_id" twice; keep one',
    ],
    ['the same field twice', withHead(`${least}\ntask_id: t2`), /Map keys must be unique at line 4/],
    ['a list as a value', withHead('type: task\ntask_id: [a]'), '"task_id" must be a text'],
    ['braces that make a map', withHead(`${least}\nto: {agent}`), '"to" must be a text'],
    ['an unquoted colon', withHead(`${least}\nfrom: me: you`), /in quotes/],
    ['an @ that isn’t quoted', withHead(`${least}\nto: @research`), /at line 4.*in quotes/],
    ['a tab as indentation', withHead(`${least}\n\tto: a`), /line [345]/],
    ['an alias', withHead('type: task\ntask_id: &a t1\nsubtask_id: *a'), /alias/i],
    ['a merge key', withHead(`${least}\n<<: x`), /unknown field "<<"/],
    ['a key that is a prototype', withHead(`${least}\n__proto__: x`), /unknown field "__proto__"/],
    ['a tag that makes code', withHead('type: task\ntask_id: !!js/function "x"'), /tag/i],
    ['a list as a head', withHead('- type: task'), /must have fields/],
    ['an empty head', '---\n---\nCompare them.', /must have fields/],
    ['an id of two lines', withHead('type: task\ntask_id: "a\\nb"'), '"task_id" must be one line of text'],
    ['a long id', withHead(`type: task\ntask_id: ${'x'.repeat(201)}`), /more than 200/],
    ['a long head', withHead(`${least}\nx: ${'x'.repeat(17_000)}`), /the limit is 16384/],
    ['a deep head', withHead(`${least}\nx: ${'['.repeat(5_000)}`), /nested too deeply/],
    ['a long body', withHead(least, 'x'.repeat(102_401)), /the body has 102401 bytes/],
    ['an empty body', withHead(least, ' \n'), /the body is empty/],
    ['a task that is done', withHead(`${least}\nstatus: done`), /"status" of a task/],
    ['an unknown mode', withHead(`${least}\nmode: fast`), /"mode" must be/],
    [
      'a reply without a subtask',
      withHead('type: reply\ntask_id: t1\nstatus: done'),
      /"subtask_id" is missing/,
    ],
    ['a reply without an end', withHead('type: reply\ntask_id: t1\nsubtask_id: a'), /"status" of a reply/],
    [
      'a reply that is ok',
      withHead('type: reply\ntask_id: t1\nsubtask_id: a\nstatus: ok'),
      /"status" of a reply/,
    ],
    [
      'a reply with a mode',
      withHead('type: reply\ntask_id: t1\nsubtask_id: a\nstatus: done\nmode: direct'),
      /"mode" belongs/,
    ],
  ];
  it.each(refused)('refuses %s and says why', async (_, text, says) => {
    expect(await parse(text)).toEqual(typeof says === 'string' ? says : expect.stringMatching(says));
  });

  it('knows a task message by its type, also while its head has mistakes', () => {
    for (const text of [
      withHead(least),
      withHead('"Type" : x\n  bad: ['),
      `---\n${least}`,
      `\`\`\`\n${withHead(least)}\`\`\``,
    ])
      expect(isTaskMail(text), text).toBe(true);
    for (const text of ['hello', 'type: task', '---\ntitle: a\n---\ntype: task', `# A\n${withHead(least)}`])
      expect(isTaskMail(text), text).toBe(false);
  });

  const value = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
    .map((text) => text.trim().toWellFormed())
    .filter((text) => !['', '~', 'null'].includes(text) && !/[\p{Cc}\p{Zl}\p{Zp}\ufffd]/u.test(text));
  const ids = { taskId: value, subtaskId: value, from: value };
  const body = fc
    .string({
      unit: fc.oneof(
        fc.constantFrom('---\n', '```', '\n', ': ', '"'),
        fc.string({ unit: 'grapheme', maxLength: 1 }),
      ),
      maxLength: 60,
    })
    .map((text) => text.replaceAll('\r\n', '\n').toWellFormed().replaceAll('\0', '').trim());
  const mail = fc.oneof(
    fc.record({
      head: fc.record(
        {
          type: fc.constant('task' as const),
          ...ids,
          to: value,
          mode: fc.constantFrom('direct' as const, 'coordinating' as const),
        },
        { requiredKeys: ['type', 'taskId', 'subtaskId', 'from'] },
      ),
      body: body.filter((text) => text !== ''),
    }),
    fc.record({
      head: fc.record(
        {
          type: fc.constant('reply' as const),
          ...ids,
          to: value,
          status: fc.constantFrom('done' as const, 'failed' as const),
        },
        { requiredKeys: ['type', 'taskId', 'subtaskId', 'from', 'status'] },
      ),
      body,
    }),
  );

  it('reads what it has written, and any YAML reader sees the same head', async () => {
    await fc.assert(
      fc.asyncProperty(mail, async (written) => {
        const text = formatTaskMail(written as TaskMail);
        expect(await parse(text)).toEqual(written);
        expect(isTaskMail(text)).toBe(true);
        const [, head = ''] = text.split(/^---$/m);
        expect(parseDocument(head, { schema: 'core' }).toJS().task_id).toBe(written.head.taskId);
      }),
      runs,
    );
  });

  it('reads or refuses any text without throwing', async () => {
    const token = fc.constantFrom(
      '---\n',
      'type: ',
      'task\n',
      'reply',
      'task_id: x\n',
      '"',
      '{',
      '- ',
      '|\n',
      '&a ',
      '*a',
      '\n',
      '```\n',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(token, fc.string()), { maxLength: 20 }), async (tokens) => {
        expect(['mail', 'refused']).toContain((await parseTaskMail(tokens.join(''))).kind);
      }),
      runs,
    );
  });
});

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { type Edit, readMutants } from './mutants.ts';
import { createMutator } from './mutator.ts';

const source = `export const gate = { open(who: string) { return check(who); } };

/** Not \`close(door)\`. */
export async function close(door: Door, others: readonly Door[]): Promise<void> {
  // if (door.isOpen) return;
  if (door.isOpen && others.length > 0)
    await door.shut({
      isLocked: true,
      why: \`it's \${door.name} or \${others.map(({ name }) => \`\${name}\`)} by "night"\`,
    });
  await others[0]?.shut({ isLocked: true });
}
`;

describe('edits', () => {
  it('finds its place whatever the layout, comments, trailing commas and file', async () => {
    const shapes = [
      source,
      source.replaceAll('\n', '\n\n    /* aside */ '),
      source.replace('night"`,', 'night"`'),
    ];
    for (const [index, shape] of shapes.entries()) {
      const file = ['src/doors.ts', 'src/doors/deep/close.ts', 'plugins/doors/main.ts'][index] ?? '';
      const edit = { in: 'close', change: '.isOpen && others → .isOpen || others' };
      expect(await mutate({ [file]: shape }, edit)).toEqual({
        [file]: shape.replace('.isOpen && others', '.isOpen || others'),
      });
    }
  });

  it('keeps what stood for a name or a run of tokens in its replacement', async () => {
    const change = 'await $D.shut({ $$HOW, why: $$WHY }); → $D.call({ $$HOW });';
    const { 'src/a.ts': text } = await mutate({ 'src/a.ts': source }, { in: 'close', change });
    expect(text).toContain('others.length > 0)\n    door.call({ isLocked: true });\n  await others');
  });

  it('changes the text of a template', async () => {
    const edit = { in: 'close', change: `or \${$$LIST} by "night" → by "day"` };
    const { 'src/a.ts': text } = await mutate({ 'src/a.ts': source }, edit);
    expect(text).toContain(`why: \`it's \${door.name} by "day"\`,`);
  });

  it.each([
    ['a statement', 'await others', '}); }'],
    ['a link of a chain', '.map(', `or \${others} by`],
    ['an operand', '&& others', 'if (door.isOpen ) await'],
    ['a member that others follow', 'isLocked: true, why', '{ why:'],
    ['the last member', 'why:', 'isLocked: true, }'],
    ['the last parameter', 'others: readonly', 'close(door: Door): Promise'],
  ])('leaves out %s', async (_, start, expected) => {
    const edit = { in: 'close', change: `omit ${start}` };
    const { 'src/a.ts': text = '' } = await mutate({ 'src/a.ts': source }, edit);
    expect(text.replace(/\s+/g, ' ')).toContain(expected);
  });

  it.each<readonly [string, Edit, RegExp]>([
    ['nothing', { in: 'close', change: 'door.open() →' }, /^close: matches nothing/],
    ['another declaration only', { in: 'gate', change: 'door.isOpen →' }, /^gate: matches nothing/],
    ['a comment only', { in: 'close', change: 'if (door.isOpen) return →' }, /matches nothing/],
    ['two places', { in: 'close', change: 'isLocked: true →' }, /matches in src\/a.ts,src\/a.ts/],
    ['two files', { in: 'gate', change: 'check(who) →' }, /matches in src\/a.ts,src\/b.ts/],
  ])('refuses an edit that matches %s', async (_, edit, message) => {
    await expect(
      mutate({ 'src/a.ts': source, 'src/b.ts': source.split('\n')[0] ?? '' }, edit),
    ).rejects.toThrow(message);
  });

  it('refuses an edit whose result does not parse', async () => {
    const edit = { in: 'gate', change: 'check(who) → check(' };
    await expect(mutate({ 'src/a.ts': source }, edit)).rejects.toThrow('src/a.ts does not parse');
  });
});

it('reads a table of broken variants by line, with marks and further edits', async () => {
  const folder = aFolder();
  const lines = [
    'test/a.test.ts',
    '  keeps a [postgres]',
    '    no a [sample] | putA | omit a',
    '      | b | 1 | 2 → 3',
  ];
  await writeFile(join(folder, 'a.txt'), `${lines.join('\n')}\n`);
  expect(await readMutants(folder)).toEqual([
    {
      name: 'no a',
      edits: [
        { in: 'putA', change: 'omit a' },
        { in: 'b', change: '1 | 2 → 3' },
      ],
      test: { file: 'test/a.test.ts', name: 'keeps a' },
      isSample: true,
      needsPostgres: true,
    },
  ]);
  await writeFile(join(folder, 'b.txt'), `${lines.slice(0, 2).join('\n')}\n    no a | putA\n`);
  await expect(readMutants(folder)).rejects.toThrow('b.txt:3: not "what | where | how"');
});

async function mutate(files: Readonly<Record<string, string>>, edit: Edit) {
  const folder = aFolder();
  for (const [file, text] of Object.entries(files)) {
    await mkdir(join(folder, file, '..'), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return Object.fromEntries((await createMutator(folder))([edit]));
}

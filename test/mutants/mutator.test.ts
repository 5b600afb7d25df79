import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import type { Edit } from './mutants.ts';
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

describe('an edit', () => {
  it('finds its place whatever the layout, the comments, the trailing commas and the file', async () => {
    const shapes = [
      source,
      source.replaceAll('\n', '\n\n    /* aside */ '),
      source.replace('night"`,', 'night"`'),
    ];
    for (const [index, shape] of shapes.entries()) {
      const file = ['src/doors.ts', 'src/doors/deep/close.ts', 'plugins/doors/main.ts'][index] ?? '';
      const edit = { in: 'close', find: '.isOpen && others', replace: '.isOpen || others' };
      expect(await mutate({ [file]: shape }, edit)).toEqual({
        [file]: shape.replace('.isOpen && others', '.isOpen || others'),
      });
    }
  });

  it('keeps in its replacement what stood for a name or a run of tokens', async () => {
    const edit = {
      in: 'close',
      find: 'await $D.shut({ $$HOW, why: $$WHY });',
      replace: '$D.call({ $$HOW });',
    };
    const { 'src/a.ts': text } = await mutate({ 'src/a.ts': source }, edit);
    expect(text).toContain('others.length > 0)\n    door.call({ isLocked: true });\n  await others');
  });

  it('reaches into the text of a template', async () => {
    const edit = { in: 'close', find: `or \${$$LIST} by "night"`, replace: 'by "day"' };
    const { 'src/a.ts': text } = await mutate({ 'src/a.ts': source }, edit);
    expect(text).toContain(`why: \`it's \${door.name} by "day"\`,`);
  });

  it.each<readonly [string, Edit, RegExp]>([
    ['nothing', { in: 'close', find: 'door.open()', replace: '' }, /^close: matches nothing/],
    ['another declaration only', { in: 'gate', find: 'door.isOpen', replace: '' }, /^gate: matches nothing/],
    ['a comment only', { in: 'close', find: 'if (door.isOpen) return', replace: '' }, /matches nothing/],
    ['two places', { in: 'close', find: 'isLocked: true', replace: '' }, /matches in src\/a.ts,src\/a.ts/],
    ['two files', { in: 'gate', find: 'check(who)', replace: '' }, /matches in src\/a.ts,src\/b.ts/],
  ])('that matches %s is refused', async (_, edit, message) => {
    await expect(
      mutate({ 'src/a.ts': source, 'src/b.ts': source.split('\n')[0] ?? '' }, edit),
    ).rejects.toThrow(message);
  });

  it('that leaves what does not parse is refused', async () => {
    const edit = { in: 'gate', find: 'check(who)', replace: 'check(' };
    await expect(mutate({ 'src/a.ts': source }, edit)).rejects.toThrow('src/a.ts does not parse');
  });
});

async function mutate(files: Readonly<Record<string, string>>, edit: Edit) {
  const folder = aFolder();
  for (const [file, text] of Object.entries(files)) {
    await mkdir(join(folder, file, '..'), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return Object.fromEntries((await createMutator(folder))([edit]));
}

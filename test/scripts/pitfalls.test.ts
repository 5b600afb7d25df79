import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
/** All but two, which are figures rather than cases. */
const numbers = [...range(1, 54), ...range(57, 68)];

it('names an existing test for each pitfall', async () => {
  const page = await readFile(join(root, 'docs/pitfalls.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (\d+) \| (.+) \| (\S+) \| (.+) \|$/gm)];
  expect([...new Set(rows.map(([, number]) => Number(number)))]).toEqual(numbers);
  const missing: string[] = [];
  for (const [, number, , path = '', name = ''] of rows) {
    const source = await readFile(join(root, path), 'utf8').catch(() => '');
    if (!source.includes(name)) missing.push(`${number}: ${path} has no test "${name}"`);
  }
  expect(missing).toEqual([]);
});

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

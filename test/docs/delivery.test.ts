import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { renderDelivery, rows, testsOf } from './delivery-table.ts';

/** As the title is written in the file. */
function isIn(file: string, title: string): boolean {
  return readFileSync(file, 'utf8').includes(title);
}

it('names an existing test for each cell of the page about deliveries', () => {
  const tests = testsOf(rows);
  expect(tests.length).toBeGreaterThan(40);
  expect(tests.filter(({ file, title }) => !isIn(file, title))).toEqual([]);
});

it('describes every channel in both directions', () => {
  const names = ['Telegram', 'Discord', 'Signal', 'page', 'terminal', 'HTTP'];
  expect(rows.map(({ name }) => name)).toEqual(names.flatMap((name) => [`${name} in`, `${name} out`]));
});

it('renders the page about deliveries from its table', async () => {
  await expect(renderDelivery(rows)).toMatchFileSnapshot('../../docs/delivery.md');
});

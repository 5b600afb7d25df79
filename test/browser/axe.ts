import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const source = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Returns each accessibility rule that the page breaks in its current state, and where. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(source, 'utf8'));
  const found: unknown = await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target.join(' ')).join(', ')))`,
  );
  return found as readonly string[];
}

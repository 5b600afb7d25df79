import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const source = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Each rule of accessibility that the page breaks as it stands, and where. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(source, 'utf8'));
  const found: unknown = await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target.join(' ')).join(', ')))`,
  );
  return found as readonly string[];
}

/** The page while a task runs in another process, and what a person stops there. */
import { test } from 'vitest';
import { axeViolations } from '../browser/axe.ts';
import { launchChromium } from '../browser/chromium.ts';
import { patienceMs } from '../support/patience.ts';
import { openStage } from './stage.ts';

test('follows a task that another process works on, from its graph to the answer', async ({
  expect,
  onTestFinished,
}) => {
  const stage = await openStage({ config: { model: 'demo' }, networks: ['web'] }, onTestFinished);
  const gateway = await stage.start({ role: 'gateway' });
  await stage.start({ role: 'worker' });
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  page.setDefaultTimeout(patienceMs);
  await page.goto(gateway.signInLink);
  await page.locator('.dot.open').first().waitFor();
  await page.fill('#composer', 'delegate tea');
  await page.keyboard.press('Enter');
  const task = page.locator('.messages .task');
  await task.locator('.graph .node').nth(3).waitFor();
  await task.getByText(/^done in \d+ s, 4 of 4 subtasks done$/).waitFor();
  expect(await task.locator('.node.done').count()).toBe(4);
  expect(await page.locator('.messages .child').count()).toBe(0);
  await page.locator('article.agent').filter({ hasText: 'made from these results' }).waitFor();
  await task.locator('.node .hit').first().click();
  await task.getByText('Instructions').waitFor();
  await task.getByText('Result', { exact: true }).waitFor();
  await task.getByRole('button', { name: 'Show its log' }).click();
  await page
    .getByRole('dialog')
    .getByText(/said: /)
    .waitFor();
  await page.keyboard.press('Escape');
  expect(await axeViolations(page)).toEqual([]);
});

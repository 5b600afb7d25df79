/** `test` for the page: one browser and one store for a file; each test has its own gateway, and a page in its own context. */
import { test as base, expect } from 'vitest';
import { lazyStore } from '../support/lazy-store.ts';
import { patienceMs } from '../support/patience.ts';
import { launchChromium } from './chromium.ts';
import { startScriptedGateway } from './scripted-gateway.ts';

export const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names that a fixture needs from this pattern
  .extend('browser', { scope: 'file' }, async ({}, { onCleanup }) => {
    const browser = await launchChromium();
    onCleanup(() => browser.close());
    return browser;
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names that a fixture needs from this pattern
  .extend('store', { scope: 'file' }, ({}, { onCleanup }) => {
    const store = lazyStore();
    onCleanup(() => store.close());
    return store;
  })
  .extend('gateway', async ({ store }, { onCleanup }) => {
    const gateway = await startScriptedGateway(store);
    onCleanup(() => gateway.close());
    return gateway;
  })
  .extend('page', async ({ browser }, { onCleanup }) => {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(patienceMs);
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error' && /Content Security Policy|TrustedType/i.test(message.text()))
        problems.push(message.text());
    });
    onCleanup(async () => {
      await context.close();
      expect(problems).toEqual([]);
    });
    return page;
  })
  .extend('signIn', ({ page, gateway }) => async () => {
    await page.goto(gateway.signInLink());
    await page.locator('.dot.open').first().waitFor();
  });

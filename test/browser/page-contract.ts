/**
 * What a person can rely on in the page. Runs against any gateway behind the URL: the scripted one here,
 * the real one in the end-to-end suite.
 */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { patienceMs } from '../support/patience.ts';
import { launchChromium } from './chromium.ts';

export type PageTarget = {
  readonly url: string;
  /** A fresh one-time link. */
  signInLink(): Promise<string>;
  close(): Promise<void>;
};

/** What to say to the gateway behind the page, and what to expect from it. */
export type PageScript = {
  /** Answered by a text that matches `answer`. */
  readonly greeting: { readonly text: string; readonly answer: RegExp };
  /** Answered slowly, with a preview that matches, so that it can be steered or stopped. */
  readonly longTask: { readonly text: string; readonly preview: RegExp };
  /** Said during the long task; `answer` matches what the agent says after reading it. */
  readonly steer: { readonly text: string; readonly answer: RegExp };
};

export function pageContract(name: string, script: PageScript, startTarget: () => Promise<PageTarget>): void {
  describe(`the page on ${name}`, () => {
    let browser: Browser;
    let target: PageTarget;
    let context: BrowserContext;
    let page: Page;
    const problems: string[] = [];

    beforeAll(async () => {
      [browser, target] = await Promise.all([launchChromium(), startTarget()]);
    });
    afterAll(async () => {
      await browser?.close();
      await target?.close();
    });
    beforeEach(async () => {
      problems.length = 0;
      context = await browser.newContext();
      page = await context.newPage();
      page.setDefaultTimeout(patienceMs);
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('console', (message) => {
        if (message.type() === 'error' && /Content Security Policy|TrustedType/i.test(message.text())) {
          problems.push(message.text());
        }
      });
    });
    afterEach(async () => {
      await context.close();
      expect(problems).toEqual([]);
    });

    const signIn = async () => {
      await page.goto(await target.signInLink());
      await page.locator('.dot.open').first().waitFor();
    };
    const say = async (text: string) => {
      await page.fill('#composer', text);
      await page.keyboard.press('Enter');
    };
    const answers = () => page.locator('article.agent:not(.preview)');

    it('shows a client that is not signed in only where to find the link', async () => {
      await page.goto(target.url);
      await page.getByText('sign-in link').waitFor();
      expect(await page.locator('#composer').count()).toBe(0);
    });

    it('signs in by a link that leaves no secret in the address', async () => {
      await signIn();
      expect(page.url()).toBe(`${target.url}/`);
      expect(await page.evaluate('document.cookie')).toBe('');
    });

    it('shows a message, its state and its answer, even after a reload', async () => {
      await signIn();
      const before = await answers().count();
      await say(script.greeting.text);
      await answers().nth(before).waitFor();
      expect(await answers().nth(before).textContent()).toMatch(script.greeting.answer);
      const own = page.locator('article.own').last();
      await own.and(page.locator('[data-state=answered]')).waitFor();
      const shown = await page.locator('article:not(.preview)').allInnerTexts();
      await page.reload();
      await answers().nth(before).waitFor();
      expect(await page.locator('article:not(.preview)').allInnerTexts()).toEqual(shown);
    });

    it('streams the answer and accepts a steer meanwhile', async () => {
      await signIn();
      await say(script.longTask.text);
      const preview = page.locator('article.preview');
      await preview.filter({ hasText: script.longTask.preview }).waitFor();
      await page.getByText('Parley is working. It reads new messages').waitFor();
      await say(script.steer.text);
      await answers().filter({ hasText: script.steer.answer }).last().waitFor();
    });

    it('stops a run with its button', async () => {
      await signIn();
      await say(script.longTask.text);
      await page.locator('article.preview').filter({ hasText: script.longTask.preview }).waitFor();
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' });
    });
  });
}

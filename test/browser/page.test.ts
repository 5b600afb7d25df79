import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChildView } from '../../src/contracts/child.ts';
import { plainText } from '../../src/contracts/formatted-text.ts';
import { messageId } from '../../src/contracts/ids.ts';
import { patienceMs } from '../support/patience.ts';
import { launchChromium } from './chromium.ts';
import { pageContract } from './page-contract.ts';
import { type ScriptedGateway, startScriptedGateway } from './scripted-gateway.ts';
import { xssStrings } from './xss-strings.ts';

pageContract(
  'a scripted gateway',
  {
    greeting: { text: 'hello', answer: /Hello there/ },
    longTask: { text: 'long task', preview: /Working on it/ },
    steer: { text: 'in French please', answer: /changed course: in French please/ },
  },
  async () => {
    const gateway = await startScriptedGateway();
    return { url: gateway.url, signInLink: async () => gateway.signInLink(), close: () => gateway.close() };
  },
);

describe('the page', () => {
  let browser: Browser;
  let gateway: ScriptedGateway;
  beforeAll(async () => {
    [browser, gateway] = await Promise.all([launchChromium(), startScriptedGateway()]);
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.close();
  });

  it('keeps a message that Parley could not store, and sends it once it can', async () => {
    const page = await browser.newPage();
    await page.goto(gateway.signInLink());
    await page.locator('.dot.open').first().waitFor();
    gateway.session.isAway = true;
    await page.fill('#composer', 'not to be lost');
    await page.keyboard.press('Enter');
    await page.locator('article.own[data-state=sending]').waitFor();
    await page.locator('.dot.lost, .dot.connecting').first().waitFor();
    await page.reload();
    await page.getByText('not to be lost').waitFor();
    gateway.session.isAway = false;
    await page.locator('article.own[data-state=answered]', { hasText: 'not to be lost' }).waitFor();
    expect(gateway.session.stored.filter((event) => textOf(event) === 'not to be lost')).toHaveLength(1);
    expect(await page.evaluate('localStorage.length')).toBe(0);
    await page.close();
  });

  it('says that it is down and comes back by itself with everything said meanwhile', async () => {
    const page = await browser.newPage();
    await page.goto(gateway.signInLink());
    await page.locator('.dot.open').first().waitFor();
    await gateway.restartSockets(() => gateway.session.say(gateway.route, { text: 'said meanwhile' }));
    await page.getByText('said meanwhile').waitFor();
    expect(await page.getByText('said meanwhile').count()).toBe(1);
    await page.close();
  });

  it('shows what the owner has to know until it is dismissed, and reads it out', async () => {
    const notice = {
      kind: 'channel-down',
      count: 1,
      since: 1_790_000_000_000,
      lastAt: 1_790_000_000_000,
    } as const;
    gateway.notices = [
      { ...notice, id: 'one', text: 'carrier is down: no answer.' },
      { ...notice, id: 'two', text: '<img src=x onerror=pwned()> is down.' },
    ];
    const page = await browser.newPage();
    await page.goto(gateway.signInLink());
    const region = page.getByRole('status', { name: 'Needs your attention' });
    await region.getByText('carrier is down: no answer.').waitFor();
    expect(await region.getByText('<img src=x onerror=pwned()> is down.').count()).toBe(1);
    expect(await region.locator('img').count()).toBe(0);
    await page.getByRole('button', { name: 'Dismiss: carrier is down: no answer.' }).click();
    await region.getByText('carrier is down').waitFor({ state: 'detached' });
    expect(gateway.notices.map(({ id }) => id)).toEqual(['two']);
    gateway.notices = [];
    await page.close();
  });

  it('asks the owner with buttons, above the conversation and in it, until a question is decided', async () => {
    const choices = [{ verdict: 'approve', label: 'Approve' }] as const;
    gateway.questions = [{ id: 'q1', text: 'Eve is asking to write to me.', since: 1, choices }];
    const page = await browser.newPage();
    await page.goto(gateway.signInLink());
    await page.getByRole('button', { name: 'Approve: Eve is asking to write to me.' }).click();
    await page.getByText('Eve is asking to write to me.').waitFor({ state: 'detached' });
    const buttons = [{ id: 'a:k3:y', label: 'Run it', command: '/approve k3' }];
    const asked = { text: 'May I run it?', author: { kind: 'notice' }, messageId: 'ask', buttons } as const;
    gateway.session.say(gateway.route, asked);
    await page.getByRole('button', { name: 'Run it' }).click();
    const presses = () => gateway.session.stored.filter(({ event }) => event.kind === 'button');
    await expect.poll(presses, { timeout: patienceMs }).toHaveLength(1);
    expect(presses()[0]?.event).toEqual({ kind: 'button', messageId: 'ask', data: 'a:k3:y' });
    await gateway.deliver({
      kind: 'edit',
      messageId: messageId('ask'),
      text: plainText('It ran.'),
      buttons: [],
    });
    await page.getByText('It ran.').waitFor();
    expect(await page.getByRole('button', { name: 'Run it' }).count()).toBe(0);
    await page.close();
  });

  it('executes none of the strings that try to be markup', async () => {
    const page = await browser.newPage();
    const attacks: string[] = [];
    await page.exposeFunction('pwned', () => attacks.push('pwned'));
    page.on('dialog', (dialog) => {
      attacks.push(dialog.message());
      void dialog.dismiss();
    });
    await page.goto(gateway.signInLink());
    await page.locator('.dot.open').first().waitFor();
    for (const text of xssStrings) {
      gateway.session.say(gateway.route, { text });
      gateway.session.say(gateway.route, { text, author: { kind: 'person', name: text } });
      gateway.session.say(gateway.route, { text, author: { kind: 'notice' } });
      gateway.session.say(gateway.route, {
        text,
        spans: [{ kind: 'link', start: 0, length: text.length, url: text }],
      });
      gateway.session.emit(gateway.route, { kind: 'tool', runId: 'xss', name: text, state: 'started' });
      gateway.session.emit(gateway.route, { kind: 'preview', runId: 'xss', text });
    }
    gateway.session.say(gateway.route, { text: 'the last one' });
    await page.getByText('the last one').waitFor();
    const unwanted =
      '#app :is(script, iframe, object, embed, video, style, base, meta, img:not([src="/page/icon.svg"]))';
    expect(await page.locator(unwanted).count()).toBe(0);
    for (const link of await page.locator('#app a').all())
      expect(await link.getAttribute('href')).toMatch(/^(https?|mailto):/);
    expect(attacks).toEqual([]);
    await page.close();
  });

  it('shows each sub-agent as a line with its state, and all of them as a tree', async () => {
    const page = await browser.newPage();
    await page.goto(gateway.signInLink());
    await page.locator('.dot.open').first().waitFor();
    const { at } = gateway.session.say(gateway.route, { text: 'I have asked two others' });
    const child = { depth: 1, agentId: 'main', createdAt: at, startedAt: at, tokens: 0, cost: 0 };
    const research = { ...child, id: 'a', name: 'research', state: 'running' } as const;
    const stand = (...children: readonly ChildView[]) => {
      gateway.session.standing = { children };
      gateway.session.emit(gateway.route, { kind: 'changed' });
    };
    stand(research, { ...child, id: 'b', name: '<b>bold</b>', state: 'queued' });
    const lines = page.locator('.messages .child');
    await lines.filter({ hasText: '<b>bold</b>queued' }).waitFor();
    await lines.filter({ hasText: 'researchrunning' }).waitFor();
    const below = { ...child, id: 'c', parentId: 'a', depth: 2, name: 'read', state: 'running' } as const;
    const end = { state: 'done', status: 'completed', endedAt: at + 12_000, tokens: 3, cost: 1200 } as const;
    stand({ ...research, ...end }, { ...child, id: 'b', name: 'write', state: 'queued' }, below);
    await lines.filter({ hasText: 'researchdone in 12 s, 3 tokens' }).waitFor();
    await page.getByText('Sub-agents: 1 running, 1 queued, 1 done · $0.0012').click();
    const names = await page.locator('.tree td:first-child .name').allInnerTexts();
    expect(names).toEqual(['research', 'read', 'write']);
    const cells = await page.locator('.tree tbody tr').first().locator('td').allTextContents();
    expect(cells.slice(1)).toEqual(['1', 'completed', '12 s', '3', '$0.0012']);
    gateway.session.standing = {};
    await page.close();
  });

  it('gives a page of another origin nothing, though the browser is signed in', async () => {
    const context = await browser.newContext();
    const own = await context.newPage();
    await own.goto(gateway.signInLink());
    await own.locator('.dot.open').first().waitFor();
    const stored = gateway.session.stored.length;
    const hostile = await serveHostilePage();
    const page = await context.newPage();
    await page.goto(`${hostile.url}/?target=${encodeURIComponent(gateway.url)}`);
    const result = page.locator('#result[data-done]');
    await result.waitFor({ state: 'attached' });
    const got = ((await result.textContent()) ?? '').split('\n');
    expect(got).toHaveLength(11);
    expect(got.filter((line) => !line.endsWith('nothing'))).toEqual([]);
    expect(gateway.session.stored).toHaveLength(stored);
    // The hostile page's sign-outs changed nothing.
    await own.reload();
    await own.locator('.dot.open').first().waitFor();
    await context.close();
    await hostile.close();
  });
});

/** Another port of the same address: same site, other origin. */
async function serveHostilePage() {
  const script = await readFile(new URL('hostile-page.js', import.meta.url), 'utf8');
  const server = createServer((_request, response) =>
    response
      .setHeader('content-type', 'text/html')
      .end(`<!doctype html><body><pre id="result"></pre><script>${script}</script>`),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

function textOf(envelope: {
  readonly event: { readonly kind: string; readonly text?: string };
}): string | undefined {
  return envelope.event.text;
}

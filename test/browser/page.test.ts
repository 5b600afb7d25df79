import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import type { ClientEvent } from '#contracts/feed.ts';
import type { ChildView } from '../../src/contracts/child.ts';
import { plainText } from '../../src/contracts/formatted-text.ts';
import { messageId } from '../../src/contracts/ids.ts';
import { formatMarkdown } from '../../src/replies/markdown.ts';
import { patienceMs } from '../support/patience.ts';
import { axeViolations } from './axe.ts';
import { test } from './page-test.ts';
import { xssStrings } from './xss-strings.ts';

describe('the page', () => {
  test('passes accessibility checks before and after the sign-in, and explains both steps', async ({
    gateway,
    page,
  }) => {
    await page.goto(gateway.url);
    await page.getByText('./bin/parley.mjs signin').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.goto(gateway.signInLink());
    await page.getByRole('main').getByText('./bin/parley.mjs onboard').waitFor();
    expect(await axeViolations(page)).toEqual([]);
  });

  test('keeps a message that Parley could not store and sends it later', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
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
  });

  test('shows that the connection is lost and recovers with everything said meanwhile', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
    await gateway.restartSockets(() => gateway.session.say(gateway.route, { text: 'said meanwhile' }));
    await page.getByText('said meanwhile').waitFor();
    expect(await page.getByText('said meanwhile').count()).toBe(1);
  });

  test('lists conversations by title or key, with their cost', async ({ page, signIn }) => {
    const session = {
      ...{
        agentId: 'main',
        messageCount: 4,
        tokens: { prompt: 300, completion: 50 },
        createdAt: 1,
        updatedAt: 1,
      },
      cost: 12_300,
    };
    const sessions = [
      { ...session, id: '1', key: 'a:key', title: 'Green <b>boats</b>', isSummarized: true },
      { ...session, id: '2', key: 'another:key', isSummarized: false },
    ];
    await page.route('**/api/sessions', (route) => route.fulfill({ json: { sessions } }));
    await signIn();
    await page.locator('details.status > summary').click();
    await page.getByText('Conversations', { exact: true }).click();
    await page.locator('.sessions li').nth(1).waitFor();
    expect(await page.locator('.sessions .name').allInnerTexts()).toEqual([
      'Green <b>boats</b>',
      'another:key',
    ]);
    expect(await page.locator('.sessions .word').allInnerTexts()).toEqual(['$0.0123', '$0.0123']);
    const details = await page.locator('.sessions .detail').allInnerTexts();
    expect(details.map((text) => text.includes('tokens: 350, summarised'))).toEqual([true, false]);
  });

  test('shows alerts until they are dismissed and announces them to screen readers', async ({
    gateway,
    page,
  }) => {
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
    await page.goto(gateway.signInLink());
    const region = page.getByRole('status', { name: 'Needs your attention' });
    await region.getByText('carrier is down: no answer.').waitFor();
    // Only the first one is shown, which leaves room on a phone.
    await region.getByRole('button', { name: 'and 1 more' }).click();
    expect(await region.getByText('<img src=x onerror=pwned()> is down.').count()).toBe(1);
    expect(await region.locator('img').count()).toBe(0);
    await page.getByRole('button', { name: 'Dismiss: carrier is down: no answer.' }).click();
    await region.getByText('carrier is down').waitFor({ state: 'detached' });
    expect(gateway.notices.map(({ id }) => id)).toEqual(['two']);
    gateway.notices = [];
  });

  test('asks the owner with buttons, in the alerts and the conversation, until a question is decided', async ({
    gateway,
    page,
  }) => {
    const choices = [{ verdict: 'approve', label: 'Approve' }] as const;
    gateway.questions = [{ id: 'q1', text: 'Eve is asking to write to me.', since: 1, choices }];
    await page.goto(gateway.signInLink());
    const region = page.getByRole('status', { name: 'Needs your attention' });
    const approve = region.getByRole('button', { name: 'Approve: Eve is asking to write to me.' });
    // The question is decided elsewhere and this page hasn't seen it yet; then the request with the answer fails.
    const asked1 = { notices: [], questions: gateway.questions };
    await page.route('**/api/notices', (route) => route.fulfill({ json: asked1 }));
    gateway.questions = [];
    await approve.click();
    await region.getByText('Already refused by telegram:1.').waitFor();
    await page.route('**/api/notices/answer', (route) => route.abort());
    await approve.click();
    await region.getByText('Your answer may not have reached Parley.').waitFor();
    expect(await region.getByText('Already refused').count()).toBe(0);
    gateway.questions = asked1.questions;
    await page.unrouteAll();
    await approve.click();
    await region.getByText('Eve is asking to write to me.').waitFor({ state: 'detached' });
    await region.getByRole('button', { name: 'Dismiss: done' }).click();
    await region.getByText('done').waitFor({ state: 'detached' });
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
  });

  test('drops a question from the alerts as soon as it was decided in the conversation', async ({
    gateway,
    page,
    signIn,
  }) => {
    const choices = [{ verdict: 'approve', label: 'Approve' }] as const;
    gateway.questions = [{ id: 'q1', text: 'May I run it?', since: 1, choices }];
    await signIn();
    const region = page.getByRole('status', { name: 'Needs your attention' });
    await region.getByText('May I run it?').waitFor();
    // Without the refresh every few seconds.
    await page.route('**/api/status', () => undefined);
    gateway.questions = [];
    await page.fill('#composer', '/approve q1');
    await page.keyboard.press('Enter');
    await region.getByText('May I run it?').waitFor({ state: 'detached' });
    await page.unrouteAll();
  });

  test('shows lanes a page at a time and stops polling once they are closed', async ({ page, signIn }) => {
    await signIn();
    const lane = { ...hostileLanes[0], state: 'idle', waiting: [], waitingCount: 0 };
    await page.route('**/api/lanes*', (route) => {
      const asked = new URL(route.request().url()).searchParams;
      // Nothing changes, so the long poll stays open.
      if (asked.has('since')) return;
      const isSecond = asked.get('after') === 'idle:first';
      const lanes = [{ ...lane, key: isSecond ? 'second' : 'first', title: undefined }];
      return route.fulfill({ json: { lanes, version: 1, ...(!isSecond && { next: 'idle:first' }) } });
    });
    await page.locator('details.status > summary').click();
    await page.getByRole('button', { name: 'Lanes and waiting messages' }).click();
    const dialog = page.getByRole('dialog', { name: 'Lanes' });
    await dialog.getByText('first', { exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'Next page' }).click();
    await dialog.getByText('second', { exact: true }).waitFor();
    expect(await dialog.getByRole('button', { name: 'Next page' }).count()).toBe(0);
    await dialog.getByRole('button', { name: 'First page' }).click();
    await dialog.getByText('first', { exact: true }).waitFor();
    const cut = page.waitForEvent('requestfailed', (request) => request.url().includes('since=1'));
    await page.waitForRequest(/since=1/);
    await page.keyboard.press('Escape');
    await cut;
    await dialog.waitFor({ state: 'detached' });
  });

  test('executes no text that looks like markup', async ({ gateway, page, signIn }) => {
    const attacks: string[] = [];
    await page.exposeFunction('pwned', () => attacks.push('pwned'));
    page.on('dialog', (dialog) => {
      attacks.push(dialog.message());
      void dialog.dismiss();
    });
    await signIn();
    for (const text of xssStrings) {
      gateway.session.say(gateway.route, { text });
      gateway.session.say(gateway.route, { text, author: { kind: 'person', name: text } });
      gateway.session.say(gateway.route, { text, author: { kind: 'notice' } });
      gateway.session.say(gateway.route, {
        text,
        spans: [{ kind: 'link', start: 0, length: text.length, url: text }],
      });
      gateway.session.emit(gateway.route, { kind: 'tool', runId: 'xss', name: text, state: 'started' });
      await gateway.draft(text);
    }
    gateway.session.say(gateway.route, { text: 'the last one' });
    await page.getByText('the last one').waitFor();
    await page.route('**/api/lanes*', (route) =>
      route.fulfill({ json: { lanes: hostileLanes, version: 1 } }),
    );
    await page.locator('details.status > summary').click();
    await page.getByRole('button', { name: 'Lanes and waiting messages' }).click();
    await page.locator('.lane').nth(xssStrings.length).waitFor();
    expect(await page.locator('.lane .words').first().textContent()).toBe(`“${xssStrings[0]}”`);
    const unwanted =
      '#app :is(script, iframe, object, embed, video, style, base, meta, img:not([src="/page/icon.svg"]))';
    expect(await page.locator(unwanted).count()).toBe(0);
    for (const link of await page.locator('#app a').all())
      expect(await link.getAttribute('href')).toMatch(/^(https?|mailto):/);
    expect(attacks).toEqual([]);
  });

  test('shows each sub-agent as a line with its state, and all of them as a tree', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
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
  });

  test('shows the newest output of a running tool, and how much of the history a summary has read', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
    const run = { runId: 'r' };
    const tell = (event: ClientEvent) => gateway.session.emit(gateway.route, event);
    gateway.session.standing = { run: { ...run, tools: ['build'], callIds: ['c'] } };
    gateway.session.say(gateway.route, { text: 'I am about to build it' });
    await page.getByText('I am about to build it').waitFor();
    tell({ kind: 'run', ...run, state: 'started' });
    tell({ kind: 'compaction', ...run, state: 'started', progress: 0.5 });
    tell({ kind: 'tool', ...run, callId: 'c', name: 'build', state: 'started' });
    tell({ kind: 'output', ...run, callId: 'c', text: `${'a step\n'.repeat(100)}the last step` });
    await page.getByText('Parley is summarizing earlier messages (50 %)').waitFor();
    const output = page.locator('.output');
    expect(
      await output.evaluate((box) => box.getBoundingClientRect().height < 200 && box.scrollTop === 0),
    ).toBe(true);
    await page.getByText('the last step').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    tell({ kind: 'tool', ...run, callId: 'c', name: 'build', state: 'done' });
    await output.waitFor({ state: 'detached' });
    gateway.session.standing = {};
    tell({ kind: 'run', ...run, state: 'ended' });
    await page.locator('.activity').waitFor({ state: 'detached' });
  });

  test('shows lists and tables, folds the steps of an answer, and copies code', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
    const { text, spans } = formatMarkdown(
      'Do:\n\n- one\n  1. two\n- three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\nls\n```',
    );
    const steps = [
      { name: 'glob', state: 'done' },
      { name: 'read', state: 'failed' },
      { name: 'write', state: 'skipped' },
    ] as const;
    const markdown = '# Now\n\n| a | b |\n|---|--:|\n| **1** | [2](https://x.example/a) |';
    gateway.session.say(gateway.route, { ...formatMarkdown(markdown), markdown });
    const drawn = page.locator('article.agent').last();
    await drawn.getByRole('heading', { name: 'Now' }).waitFor();
    await drawn.locator('td strong', { hasText: '1' }).waitFor();
    await drawn.locator('td.right a[href="https://x.example/a"]', { hasText: '2' }).waitFor();
    // The cell has the link, so its address isn't listed below.
    expect(await drawn.textContent()).not.toContain('[1]');
    await page.evaluate('navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }');
    await drawn.hover();
    await drawn.getByRole('button', { name: 'Copy answer' }).click();
    await drawn.getByText('Copied').waitFor();
    expect(await page.evaluate('globalThis.copied')).toBe(markdown);
    gateway.session.say(gateway.route, { text, spans, steps });
    const answer = page.locator('article.agent').last();
    await answer.locator('ul > li > ol > li', { hasText: 'two' }).waitFor();
    expect(await answer.locator('th, td').allTextContents()).toEqual(['a', 'b', '1', '2']);
    await answer.getByText('3 steps, 1 failed').click();
    await answer.getByText('read').waitFor();
    await answer.getByText('write (skipped)').waitFor();
    await answer.hover();
    await answer.getByRole('button', { name: 'Copy code' }).click();
    await answer.getByText('Copied').waitFor();
    expect(await axeViolations(page)).toEqual([]);
  });

  test('attaches text that is too long for a message as a file without cutting it', async ({
    page,
    signIn,
  }) => {
    await signIn();
    const paste = (letters: number) =>
      page.evaluate(`(() => {
        const clipboardData = new DataTransfer();
        clipboardData.setData('text/plain', 'x'.repeat(${letters}));
        const options = { clipboardData, bubbles: true, cancelable: true };
        document.getElementById('composer').dispatchEvent(new ClipboardEvent('paste', options));
      })()`);
    await paste(40_000);
    await page.getByText("so it's attached as a file").waitFor();
    await page.locator('.files li', { hasText: 'pasted-text.txt' }).waitFor();
    expect(await page.inputValue('#composer')).toBe('');
    await page.getByRole('button', { name: 'Remove pasted-text.txt' }).click();
    await page.getByText("so it's attached as a file").waitFor({ state: 'detached' });
    await page.fill('#composer', 'y'.repeat(33_000));
    await page.locator('.files li', { hasText: 'pasted-text.txt' }).waitFor();
    expect(await page.inputValue('#composer')).toBe('');
  });

  test('offers commands as they are typed, and Escape closes the menu first', async ({ page, signIn }) => {
    await signIn();
    const menu = page.getByRole('listbox', { name: 'Commands' });
    await page.locator('#composer').pressSequentially('/s');
    expect(await menu.getByRole('option').allInnerTexts()).toEqual([
      expect.stringContaining('/stop'),
      expect.stringContaining('/status'),
    ]);
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Tab');
    await expect.poll(() => page.inputValue('#composer'), { timeout: patienceMs }).toBe('/status');
    await page.fill('#composer', '/');
    await menu.waitFor();
    await page.keyboard.press('Escape');
    await menu.waitFor({ state: 'detached' });
    await page.fill('#composer', '');
  });

  test('shows what happened to a message, and Escape closes each panel', async ({ page, signIn }) => {
    await signIn();
    await page.fill('#composer', 'what of this?');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'answered', exact: true }).last().click();
    const dialog = page.getByRole('dialog', { name: 'What happened to this message' });
    await dialog.getByText('reached web: accepted').waitFor();
    await dialog.hover();
    const line = `getComputedStyle(document.querySelector('dialog.why')).textDecorationLine`;
    expect(await page.evaluate(line)).toBe('none');
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.locator('details.status > summary').click();
    await page.getByText('Signed-in browsers').click();
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByText('Signed-in browsers').waitFor({ state: 'hidden' });
  });

  test('creates a token, shows it once, and revokes it', async ({ gateway, page, signIn }) => {
    await signIn();
    await page.locator('details.status > summary').click();
    const tokens = page.locator('details.tokens');
    await tokens.locator('summary').click();
    await tokens.getByRole('button', { name: 'Create token' }).waitFor();
    await tokens.getByLabel('Name').fill('script');
    await tokens.getByRole('button', { name: 'Create token' }).click();
    await tokens.getByText('Choose what it may do.').waitFor();
    await tokens.getByLabel('read:').check();
    await tokens.getByRole('button', { name: 'Create token' }).click();
    const secret = (await tokens.locator('code').textContent()) ?? '';
    const status = () =>
      fetch(`${gateway.url}/api/sessions`, { headers: { authorization: `Bearer ${secret}` } });
    expect((await status()).status).toBe(200);
    expect(await axeViolations(page)).toEqual([]);
    await tokens.getByRole('button', { name: 'Revoke script' }).click();
    await tokens.getByText('read; never used').waitFor({ state: 'detached' });
    expect(await tokens.locator('code').count()).toBe(0);
    expect((await status()).status).toBe(401);
  });

  test('says that it could not sign out and keeps unsent messages', async ({ gateway, page, signIn }) => {
    await signIn();
    gateway.session.isAway = true;
    await page.fill('#composer', 'unsent');
    await page.keyboard.press('Enter');
    await page.route('**/api/sign-out', (route) => route.abort());
    await page.locator('details.status > summary').click();
    await page.getByRole('button', { name: 'Sign out this browser' }).click();
    await page.getByText('This browser is still signed in').waitFor();
    gateway.session.isAway = false;
    const texts = () =>
      gateway.session.stored.map(({ event }) => (event.kind === 'message' ? event.text : event.kind));
    await expect.poll(texts, { timeout: patienceMs }).toContain('unsent');
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Sign out this browser' }).click();
    await page.getByLabel('Access token').waitFor();
  });

  test('sends uploaded files with their message, within the limit', async ({ gateway, page, signIn }) => {
    await signIn();
    const choose = page.getByLabel('Add files').last();
    await choose.setInputFiles([
      { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('kept') },
      { name: 'large.bin', mimeType: '', buffer: Buffer.alloc(2_000) },
    ]);
    await page.getByText('too large').waitFor();
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Remove large.bin' }).click();

    await page.route('**/uploads/web', (route) => route.fulfill({ status: 507 }));
    await choose.setInputFiles([{ name: 'more.txt', mimeType: 'text/plain', buffer: Buffer.from('more') }]);
    await page.getByText('too many unsent files').waitFor();
    await page.getByRole('button', { name: 'Remove more.txt' }).click();
    await page.unrouteAll();

    await choose.setInputFiles([{ name: 'wrong.txt', mimeType: 'text/plain', buffer: Buffer.from('x') }]);
    const dropped = page.waitForRequest('**/uploads/web/drop');
    await page.getByText('sending…').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Remove wrong.txt' }).click();
    expect((await (await dropped).response())?.status()).toBe(204);

    // A waiting message is edited in between: the draft and its file are back afterwards.
    const draft = () => page.inputValue('#composer');
    await page.fill('#composer', 'my draft');
    const waiting = {
      author: { kind: 'person', name: 'you' },
      messageId: randomUUID(),
      text: 'to edit',
      state: 'waiting',
    } as const;
    gateway.session.say(gateway.route, waiting);
    const edit = page.locator('article.own[data-state=waiting]').getByRole('button', { name: 'edit' });
    await edit.click();
    await expect.poll(draft, { timeout: patienceMs }).toBe('to edit');
    expect(await page.getByText('notes.txt').count()).toBe(0);
    await page.getByRole('button', { name: 'Cancel edit' }).click();
    await expect.poll(draft, { timeout: patienceMs }).toBe('my draft');
    await edit.click();
    await expect.poll(draft, { timeout: patienceMs }).toBe('to edit');
    await page.fill('#composer', 'edited');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect.poll(draft, { timeout: patienceMs }).toBe('my draft');
    gateway.session.setState(waiting.messageId, 'answered');

    await page.getByRole('button', { name: 'Send' }).click();
    const own = page.locator('article.own', { hasText: 'notes.txt' });
    await own.and(page.locator('[data-state=answered]')).waitFor();
    const [edited, sent] = gateway.session.stored.slice(-2).map(({ event }) => event);
    expect(edited).toMatchObject({ kind: 'edit', messageId: waiting.messageId, text: 'edited' });
    if (sent?.kind !== 'message') throw new Error('no message');
    expect(sent.text).toBe('my draft');
    expect(sent.attachments).toMatchObject([{ name: 'notes.txt', kind: 'file', sizeBytes: 4 }]);
  });

  test('shows a command and a quoted message, and retries a refused message once', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
    const you = { author: { kind: 'person', name: 'you' } } as const;
    const [asked, refused] = [randomUUID(), randomUUID()];
    gateway.session.say(gateway.route, { ...you, messageId: asked, text: '/status', state: 'command' });
    const reason = 'HTTP 400: `reasoning_effort` is not supported by this model. '.repeat(4).trim();
    const failed = { messageId: refused, text: 'Which colour?', state: 'failed', reason };
    gateway.session.say(gateway.route, { ...you, ...failed });
    gateway.session.say(gateway.route, { text: 'Blue.', messageId: 'quoting', replyTo: refused });
    await page.locator('article.own[data-state=command]', { hasText: '/status' }).waitFor();
    await page.locator('article.agent .quoted', { hasText: 'Which colour?' }).waitFor();
    await page.getByText('reasoning_effort').waitFor();
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      expect(await axeViolations(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    }
    const before = gateway.session.stored.length;
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    await page.evaluate("for (const _ of [1, 2]) document.querySelector('.state.failed .link').click()");
    await page.locator('article.own[data-state=answered]', { hasText: 'Which colour?' }).waitFor();
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
    expect(new Set(gateway.session.stored.slice(before).map(({ eventKey }) => eventKey)).size).toBe(1);
  });

  test('resends or drops messages that may not have arrived, in their alert', async ({
    gateway,
    page,
    signIn,
  }) => {
    const notice = { kind: 'delivery-unknown', count: 2, since: 1_790_000_000_000, lastAt: 1 } as const;
    gateway.notices = [{ ...notice, id: 'n', text: '2 messages may not have arrived.' }];
    const part = {
      conversation: 'telegram/1',
      state: 'unknown',
      attempts: 1,
      problem: undefined,
      createdAt: 1,
    };
    gateway.undelivered = [
      { ...part, key: 'a', excerpt: 'first' },
      { ...part, key: 'b', excerpt: 'second' },
      { ...part, key: 'c', state: 'pending', excerpt: 'on its way' },
    ];
    await signIn();
    await page.getByRole('button', { name: 'Send again: first' }).click();
    await page.getByText('first').waitFor({ state: 'detached' });
    expect(await page.getByText('on its way').count()).toBe(0);
    await page.getByRole('button', { name: 'Drop: second' }).click();
    await page.getByText('second').waitFor({ state: 'detached' });
    expect(gateway.undelivered.map(({ key }) => key)).toEqual(['c']);
    expect(await axeViolations(page)).toEqual([]);
    gateway.notices = [];
  });

  test('gives a page of another origin nothing, even if the browser is signed in', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
    const stored = gateway.session.stored.length;
    const hostile = await serveHostilePage();
    const other = await page.context().newPage();
    await other.goto(`${hostile.url}/?target=${encodeURIComponent(gateway.url)}`);
    const result = other.locator('#result[data-done]');
    await result.waitFor({ state: 'attached' });
    const got = ((await result.textContent()) ?? '').split('\n');
    expect(got).toHaveLength(11);
    expect(got.filter((line) => !line.endsWith('nothing'))).toEqual([]);
    expect(gateway.session.stored).toHaveLength(stored);
    // The sign-outs of the hostile page changed nothing.
    await page.reload();
    await page.locator('.dot.open').first().waitFor();
    await hostile.close();
  });
});

describe('the page on a scripted gateway', () => {
  const say = async (page: Page, text: string) => {
    await page.fill('#composer', text);
    await page.keyboard.press('Enter');
  };
  const answers = (page: Page) => page.locator('article.agent:not(.preview)');
  const previewOf = (page: Page) => page.locator('article.preview').filter({ hasText: 'Working on it' });

  test('shows a client that is not signed in only where to find the link', async ({ gateway, page }) => {
    await page.goto(gateway.url);
    await page.getByText('sign-in link').waitFor();
    expect(await page.locator('#composer').count()).toBe(0);
  });

  test('signs in by a link that leaves no secret in the address', async ({ gateway, page, signIn }) => {
    await signIn();
    expect(page.url()).toBe(`${gateway.url}/`);
    expect(await page.evaluate('document.cookie')).toBe('');
  });

  test('shows a message, its state and its answer, even after a reload', async ({ page, signIn }) => {
    await signIn();
    const before = await answers(page).count();
    await say(page, 'hello');
    await answers(page).nth(before).waitFor();
    expect(await answers(page).nth(before).textContent()).toMatch(/Hello there/);
    const own = page.locator('article.own').last();
    await own.and(page.locator('[data-state=answered]')).waitFor();
    const shown = await page.locator('article:not(.preview)').allInnerTexts();
    await page.reload();
    await answers(page).nth(before).waitFor();
    expect(await page.locator('article:not(.preview)').allInnerTexts()).toEqual(shown);
  });

  test('streams the answer and accepts a steer meanwhile', async ({ page, signIn }) => {
    await signIn();
    await say(page, 'long task');
    await previewOf(page).waitFor();
    await page.getByText('Parley is working. It reads new messages').waitFor();
    await say(page, 'in French please');
    await answers(page).filter({ hasText: 'changed course: in French please' }).last().waitFor();
  });

  test('stops a run with its button', async ({ page, signIn }) => {
    await signIn();
    await say(page, 'long task');
    await previewOf(page).waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' });
  });
});

const hostileLanes = [...xssStrings, 'the last one'].map((text) => ({
  ...{ key: text, title: text, class: 'main', agentId: text, mode: text, state: 'parked', waitingCount: 1 },
  run: { id: text, kind: text, ageMs: 1, waitsFor: text, isStopping: false },
  holder: { id: text, role: text, leaseAgeMs: 1 },
  waiting: [
    {
      ...{ id: text, number: 1, kind: text, state: text, sender: text, senderName: text, excerpt: text },
      ...{ files: 0, isAhead: true, ageMs: 1 },
    },
  ],
}));

/** Serves the page from another port of the same address: same site, other origin. */
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

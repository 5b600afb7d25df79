/** A task in the conversation: its graph, the list with the same facts, and what a person can do about it. */
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import type { SubtaskView, TaskActivity } from '../../src/contracts/task.ts';
import { axeViolations } from './axe.ts';
import { test } from './page-test.ts';
import type { ScriptedGateway } from './scripted-gateway.ts';
import { aNode, aTask } from './some-tasks.ts';
import { xssStrings } from './xss-strings.ts';

const node = aNode(Date.now());
const diamond = [
  node('look-up', 'done'),
  node('prices', 'dispatched', ['look-up']),
  node('terms', 'dispatched', ['look-up'], { tries: 2 }),
  node('letter', 'pending', ['prices', 'terms']),
];

/** Makes the gateway report these tasks. */
function stand({ session, route }: ScriptedGateway, ...tasks: readonly TaskActivity[]): void {
  session.standing = { tasks };
  session.emit(route, { kind: 'changed' });
}

/** Answers `tasks/show` as the gateway does. */
async function answerTasks(page: Page, task: TaskActivity, result = 'a table'): Promise<void> {
  const texts = Object.fromEntries(
    task.subtasks.map(({ id, state }) => [
      id,
      { instructions: `Do ${id}.`, expected: 'a result', ...(state === 'done' && { result }) },
    ]),
  );
  const record = { ...task, authority: 'owner', instructions: 'all', texts };
  await page.route('**/api/tasks/show*', (route) => route.fulfill({ json: record }));
}

/** Collects what the page asks for by these operations, and refuses it with a text, or does it. */
async function takeOrders(page: Page, refusal?: string): Promise<readonly (readonly [string, object])[]> {
  const orders: (readonly [string, object])[] = [];
  await page.route(/\/api\/tasks\/(?:stop|steer|retry)/, async (route) => {
    const request = route.request();
    orders.push([new URL(request.url()).pathname.slice('/api/'.length), request.postDataJSON() as object]);
    if (refusal === undefined) return route.fulfill({ json: { id: 'task' } });
    await route.fulfill({ status: 409, json: { error: { code: 'not_possible', text: refusal } } });
  });
  return orders;
}

describe('a task on the page', () => {
  test('draws its graph once, follows its states, and announces their changes only', async ({
    gateway,
    page,
    signIn,
  }) => {
    const loaded: string[] = [];
    page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
    await signIn();
    const task = aTask(diamond);
    expect(loaded).not.toContain('/vendor/dagre.js');
    stand(gateway, task);
    const nodes = page.locator('.graph .node');
    const buttons = nodes.locator('.hit');
    await nodes.nth(3).waitFor();
    expect(loaded.filter((path) => path === '/vendor/dagre.js')).toHaveLength(1);
    expect(await page.locator('.graph .edge').count()).toBe(4);
    const labels = () => buttons.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
    expect(await labels()).toEqual([
      'look-up: do look-up, done, agent main',
      'prices: do prices, running, agent main, after look-up',
      'terms: do terms, running, agent main, try 2, after look-up',
      'letter: do letter, waiting, agent main, after prices and terms',
    ]);
    await page.getByText('1 of 4 subtasks done, prices and terms run').waitFor();
    const status = page.locator('.task [role=status]').first();
    expect(await page.locator('.task').getAttribute('aria-live')).toBe('off');
    expect(await status.textContent()).toBe('');
    const svg = await page.locator('.graph > svg').elementHandle();
    const places = () => nodes.evaluateAll((all) => all.map((one) => one.getAttribute('transform')));
    const before = await places();
    const time = page.locator('.node.dispatched .facts').first();
    const shown = await time.textContent();
    await expect.poll(() => time.textContent()).not.toBe(shown);
    expect(await status.textContent()).toBe('');
    const [lookUp, , terms, letter] = diamond as [SubtaskView, SubtaskView, SubtaskView, SubtaskView];
    const failed = node('prices', 'failed', ['look-up'], { error: 'no prices' });
    stand(gateway, { ...task, revision: 2, subtasks: [lookUp, failed, terms, letter] });
    await page.locator('.node.failed').waitFor();
    await expect.poll(() => status.textContent()).toBe('Compare three suppliers: prices failed');
    expect(await places()).toEqual(before);
    expect(await svg?.evaluate((one) => one.isConnected)).toBe(true);
  });

  test('opens a subtask with the keyboard, steers it and stops it', async ({ gateway, page, signIn }) => {
    await signIn();
    const task = aTask(diamond);
    await answerTasks(page, task);
    const orders = await takeOrders(page);
    stand(gateway, task);
    await page.locator('.node .hit').first().focus();
    expect(await page.locator('.node .hit[tabindex="0"]').count()).toBe(1);
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    const focused = () => page.evaluate('document.activeElement.dataset.node');
    const id = (await focused()) as string;
    expect(['prices', 'terms']).toContain(id);
    await page.keyboard.press('Enter');
    const details = page.getByRole('region', { name: `Subtask ${id}` });
    await details.getByText(`Do ${id}.`).waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe(id);
    expect(await details.getByText('If it fails, the task fails.').count()).toBe(1);
    await details.getByLabel(`Message to ${id}`).fill('only in euros');
    await page.keyboard.press('Enter');
    await details.getByText('It reads this before its next step.').waitFor();
    expect(await details.getByLabel(`Message to ${id}`).inputValue()).toBe('');
    await details.getByRole('button', { name: `Stop ${id}` }).click();
    await details.getByText('It is being stopped.').waitFor();
    await page.getByRole('button', { name: 'Stop the task' }).click();
    await expect.poll(() => orders.length).toBe(3);
    expect(orders).toEqual([
      ['tasks/steer', { id: task.id, subtask: id, text: 'only in euros' }],
      ['tasks/stop', { id: task.id, subtask: id }],
      ['tasks/stop', { id: task.id }],
    ]);
    await details.getByRole('button', { name: `Close ${id}` }).focus();
    await page.keyboard.press('Escape');
    expect(await details.count()).toBe(0);
    expect(await focused()).toBe(id);
  });

  test('says why a subtask failed and why an order was refused, and retries a failed task', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
    const subtasks = [
      node('a', 'failed', [], { error: 'its run ended with error' }),
      node('b', 'skipped', ['a']),
    ];
    const task = aTask(subtasks, { state: 'failed', error: 'a: it failed', endedAt: Date.now() });
    await answerTasks(page, task);
    const orders = await takeOrders(page, 'Its time is up.');
    stand(gateway, task);
    await page.locator('.node.failed').click();
    await page.getByText('its run ended with error').waitFor();
    expect(await page.getByRole('button', { name: 'Steer' }).count()).toBe(0);
    await page.route('**/api/subagents/log*', (route) =>
      route.fulfill({ json: { messages: [{ role: 'assistant', parts: [textPart('I looked')] }] } }),
    );
    await page.getByRole('button', { name: 'Show its log' }).click();
    await page.getByRole('dialog').getByText('said: I looked').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('alert').getByText('Its time is up.').waitFor();
    expect(orders).toEqual([['tasks/retry', { id: task.id }]]);
    expect(await page.getByRole('button', { name: 'Stop the task' }).count()).toBe(0);
  });

  test('passes accessibility checks in light and dark, and has the same facts as a list', async ({
    gateway,
    page,
    signIn,
  }) => {
    await signIn();
    const task = aTask(diamond);
    await answerTasks(page, task);
    stand(gateway, task);
    await page.locator('.node').nth(1).click();
    await page.getByText('Subtasks as a list').click();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect([colorScheme, await axeViolations(page)]).toEqual([colorScheme, []]);
    }
    const rows = await page
      .locator('.task tbody tr')
      .evaluateAll((all) =>
        all.map((row) => [...row.children].map((cell) => (cell.textContent ?? '').trim())),
      );
    expect(rows.map(([id, state, after, agent, tries]) => [id, state, after, agent, tries])).toEqual([
      ['look-up', 'done', '–', 'main', '1'],
      ['prices', 'running', 'look-up', 'main', '1'],
      ['terms', 'running', 'look-up', 'main', '2'],
      ['letter', 'waiting', 'prices, terms', 'main', '0'],
    ]);
    expect(rows[0]?.slice(5)).toEqual(['12 s', '$0.0021']);
    await page.getByRole('button', { name: 'terms' }).first().click();
    await page.getByRole('region', { name: 'Subtask terms' }).waitFor();
  });

  test('fits a phone: a wide graph scrolls inside its card', async ({ gateway, page, signIn }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await signIn();
    const fan = Array.from({ length: 38 }, (_, n) =>
      node(`part-${n}`, 'dispatched', n < 5 ? [] : [`part-${n % 5}`, `part-${(n + 1) % 5}`]),
    );
    for (const subtasks of [diamond, fan]) {
      const task = aTask(subtasks);
      stand(gateway, task);
      await page.locator(`[data-task="${task.id}"] .graph > svg`).waitFor();
      const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(over).toBe(0);
      const box = await page.locator('.graph').boundingBox();
      expect(box && box.x >= 0 && box.x + box.width <= 390).toBe(true);
    }
    const inner = await page.locator('.graph').evaluate((one) => one.scrollWidth - one.clientWidth);
    expect(inner).toBeGreaterThan(0);
  });

  test('shows counts and a list of a graph that is too large to draw', async ({ gateway, page, signIn }) => {
    await signIn();
    const subtasks = [node('a', 'dispatched'), node('b', 'failed', ['gone'])];
    stand(gateway, aTask(subtasks, { counts: { done: 347, dispatched: 1, failed: 1, pending: 1 } }));
    await page.getByText('347 of 350 subtasks done, 1 failed, a runs').waitFor();
    expect(await page.locator('.counts li').allInnerTexts()).toEqual([
      '347 done',
      '1 running',
      '1 failed',
      '1 waiting',
    ]);
    expect(await page.locator('.task tbody tr').count()).toBe(2);
    expect(await page.locator('.graph').count()).toBe(0);
    // 200 subtasks, each after 20 others: drawing it would block the page.
    const tangled = Array.from({ length: 200 }, (_, n) =>
      node(
        `n${n}`,
        'pending',
        n < 100 ? [] : Array.from({ length: 20 }, (_, k) => `n${(n * 7 + k * 5) % 100}`),
      ),
    );
    stand(gateway, aTask(tangled));
    await page.locator('.task tbody tr').nth(199).waitFor();
    expect(await page.getByText('This graph is too large to draw.').count()).toBe(1);
  });

  test('shows the graph that a peer has made inside its subtask', async ({ gateway, page, signIn }) => {
    await signIn();
    const inner = aTask([node('deep', 'dispatched')], {
      title: 'inner',
      parent: { taskId: 'outer', subtaskId: 'a' },
    });
    const outer = aTask([node('a', 'dispatched', [], { taskId: inner.id })], { id: 'outer' });
    await answerTasks(page, outer);
    stand(gateway, outer, inner);
    await page.locator('.node').click();
    expect(await page.locator('.messages .task').count()).toBe(1);
    await page.getByText('Its own graph: 0 of 1 subtask done, deep runs').click();
    await page.locator('.nested .node').waitFor();
    await page.locator('.nested').getByText('Stop the task').waitFor();
  });

  test('executes no text of a task that looks like markup', async ({ gateway, page, signIn }) => {
    const attempts: string[] = [];
    await page.exposeFunction('pwned', () => attempts.push('pwned'));
    page.on('dialog', async (dialog) => {
      attempts.push(dialog.message());
      await dialog.dismiss();
    });
    await signIn();
    const subtasks = xssStrings.map((text, n) =>
      node(`n${n}`, 'done', [], { agent: text, name: text, error: text }),
    );
    const task = aTask(subtasks, { title: xssStrings.join(' '), error: xssStrings[0] ?? '' });
    await answerTasks(page, task, xssStrings.join('\n'));
    stand(gateway, task);
    await page.locator('.node').first().click();
    await page.getByText('Subtasks as a list').click();
    await page.locator('.subtask .words').nth(2).waitFor();
    expect(await page.locator('.subtask pre').last().textContent()).toBe(xssStrings.join('\n'));
    expect(attempts).toEqual([]);
  });
});

function textPart(text: string) {
  return { type: 'text', data: { text } };
}

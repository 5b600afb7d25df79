import { describe, expect } from 'vitest';
import { readStore } from '../e2e/conservation.ts';
import { openStage } from '../e2e/stage.ts';
import { until } from '../e2e/until.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import { test } from './page-test.ts';

describe('a page whose gateway is killed', () => {
  test('shows nothing of a run that ended while its gateway was down', async ({ page, onTestFinished }) => {
    const stage = await openStage({ networks: ['web'] }, onTestFinished);
    const start = (port = '0') => stage.start({ env: { PARLEY_PORT: port } });
    const parley = await start();
    await page.goto(parley.signInLink);
    await page.locator('.dot.open').first().waitFor();
    const gate = createGate();
    stage.model.script((_body, count) =>
      count === 1
        ? { chunks: ['Once ', 'upon ', 'a time'], hold: { gate, afterChunks: 2 } }
        : { text: 'Once upon a time it ended.' },
    );
    await page.fill('#composer', 'tell me a story');
    await page.keyboard.press('Enter');
    const stop = page.getByRole('button', { name: 'Stop' });
    await page.locator('article.preview').waitFor();
    await page.getByText('being answered').waitFor();
    expect(await stop.count()).toBe(1);

    await parley.kill();
    await page.locator('.dot.lost, .dot.connecting').first().waitFor();
    await page.locator('.hint', { hasText: 'Connection lost' }).waitFor();
    await stop.waitFor({ state: 'detached' });
    // The run continues and ends where the page can't see it.
    const elsewhere = await start();
    const isOver = () =>
      readStore(stage.dataDir, `select 1 from inbox where outcome = 'answered'`).length > 0;
    await until(isOver, { what: 'the end of the run' });
    await elsewhere.stop();
    await start(new URL(parley.url).port);

    await page.locator('.dot.open').first().waitFor();
    await page.locator('article.own[data-state=answered]').waitFor();
    await page.getByText('Once upon a time it ended.').waitFor();
    await stop.waitFor({ state: 'detached' });
    await page.locator('.activity').waitFor({ state: 'detached' });
    expect(await page.getByText('being answered').count()).toBe(0);
    expect(await page.getByText('Once upon a time it ended.').count()).toBe(1);
    const { PARLEY_SCREENSHOT } = process.env;
    if (PARLEY_SCREENSHOT !== undefined) await page.screenshot({ path: PARLEY_SCREENSHOT });
  });
});

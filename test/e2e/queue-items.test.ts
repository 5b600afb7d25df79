/** The queue, listed and changed in a chat, on the command line and on the page, while the agent works. */
import { type TestContext, test } from 'vitest';
import { axeViolations } from '../browser/axe.ts';
import { launchChromium } from '../browser/chromium.ts';
import { runParley } from '../cli/run-parley.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import { patienceMs } from '../support/patience.ts';
import { countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { pageToken } from './page-state.ts';
import { type StageSettings, startStage } from './stage.ts';
import { ada, bob, said, untilSaid } from './telegram-chat.ts';

/** A gateway whose run waits at the gate while three messages from Ada arrive; then the model gives these answers. */
async function startBusy(
  answers: readonly string[],
  onTestFinished: TestContext['onTestFinished'],
  settings: StageSettings = {},
) {
  const { telegram, model, dataDir, parley } = await startStage(settings, onTestFinished);
  const gate = createGate();
  model.script([
    { chunks: ['I am ', 'done.'], hold: { gate, afterChunks: 1 } },
    ...answers.map((text) => ({ chunks: [text] })),
  ]);
  telegram.userSends({ from: ada, text: '/queue followup' });
  await telegram.waitFor(() => said(telegram, ada.id).length > 0);
  telegram.userSends({ from: ada, text: 'Begin.' });
  await telegram.waitFor(() => model.requests.length === 1);
  for (const text of ['Buy milk.', 'Buy bread.', 'Call mum.']) telegram.userSends({ from: ada, text });
  const waiting = () => readStore(dataDir, `select 1 from inbox where state = 'waiting'`).length;
  const { signInLink } = parley();
  return {
    telegram,
    dataDir,
    gate,
    signInLink,
    untilThreeWait: () => telegram.waitFor(() => waiting() === 3),
  };
}

test.concurrent('lists, promotes, edits and cancels waiting messages on Telegram during a run', async ({
  expect,
  onTestFinished,
}) => {
  const { telegram, dataDir, gate, untilThreeWait } = await startBusy(
    ['Hello to you.', 'One.', 'Two.'],
    onTestFinished,
  );
  const told = () => said(telegram, ada.id);
  const ask = async (text: string) => {
    const before = told().length;
    telegram.userSends({ from: ada, text });
    await telegram.waitFor(() => told().length > before);
    return told().at(-1) ?? '';
  };
  // Bob's conversation is another one, so its numbers mean nothing here.
  telegram.userSends({ from: bob, text: 'Hello.' });
  await untilSaid(telegram, { chat: bob.id, text: 'Hello to you.' });
  await untilThreeWait();

  const list = await ask('/queue list');
  expect(list).toMatch(
    /^Waiting \(3\), next first:\n#\d+ Ada, \d+ s: “Buy milk\.”\n#\d+ Ada, .*\n#\d+ Ada, /,
  );
  const [milk, , mum] = [...list.matchAll(/^#(\d+)/gm)].map(([, number]) => number);
  expect(await ask(`/queue promote ${mum}`)).toBe(`#${mum} comes next: “Call mum.”`);
  expect(await ask(`/queue edit ${mum} Call Mum, please.`)).toBe(`#${mum} now reads: “Call Mum, please.”`);
  expect(await ask(`/queue cancel #${milk}`)).toBe(`Cancelled #${milk}: “Buy milk.”`);
  expect(await ask('/queue')).toMatch(
    /^Queue: followup .*\nSet here with \/queue: mode\. .*\n2 waiting: see \/queue list\./,
  );
  gate.open();
  await untilSaid(telegram, { chat: ada.id, text: 'Two.' });
  await untilAtRest(dataDir, 11);

  expect(told().slice(-3)).toEqual(['I am done.', 'One.', 'Two.']);
  const asked = readStore(
    dataDir,
    `select parts from transcript where role = 'user' order by createdAt, position`,
  );
  expect(asked.map(({ parts }) => /"text":"([^"]*)"/.exec(String(parts))?.[1])).toEqual([
    'Begin.',
    'Hello.',
    'Call Mum, please.',
    'Buy bread.',
  ]);
  expect(countTold(dataDir, ['Buy milk.', 'Call mum.', 'Call Mum, please.', 'Buy bread.'])).toEqual([
    0, 0, 1, 1,
  ]);
  expect(await ask(`/queue cancel ${mum}`)).toBe(`#${mum} is no longer waiting: answered.`);
  await untilAtRest(dataDir, 12);
  const changes = readStore(dataDir, 'select kind, "by" from itemChanges order by "at"');
  expect(changes.map(({ kind, by }) => `${kind} by ${by}`)).toEqual([
    `promote by telegram:${ada.id}`,
    `edit by telegram:${ada.id}`,
    `cancel by telegram:${ada.id}`,
  ]);
  expect(telegram.platform.commands.find(({ command }) => command === 'queue')?.description).toContain(
    'waiting',
  );
  expect(findBreaches(dataDir)).toEqual([]);
});

test.concurrent('lists, promotes and cancels waiting messages on the command line', async ({
  expect,
  onTestFinished,
}) => {
  const { telegram, dataDir, gate, untilThreeWait } = await startBusy(['One.', 'Two.'], onTestFinished);
  const queue = (...args: string[]) =>
    runParley(['queue', ...args], { PARLEY_DATA_DIR: dataDir, PARLEY_TOKEN: pageToken });
  await untilThreeWait();

  const listed: readonly { id: string; excerpt: string }[] = JSON.parse(
    (await queue('list', '--json')).stdout,
  );
  expect(listed.map(({ excerpt }) => excerpt)).toEqual(['Buy milk.', 'Buy bread.', 'Call mum.']);
  const [milk, , mum] = listed.map(({ id }) => id);
  expect(await queue('promote', `${mum}`)).toMatchObject({ code: 0, stderr: '' });
  expect(await queue('cancel', `${milk}`)).toMatchObject({ code: 0, stderr: '' });
  const told = 'Your message was cancelled, so I won’t answer it: “Buy milk.”';
  await untilSaid(telegram, { chat: ada.id, text: told });
  gate.open();
  await untilSaid(telegram, { chat: ada.id, text: 'Two.' });
  await untilAtRest(dataDir, 5);
  expect(said(telegram, ada.id).slice(-3)).toEqual(['I am done.', 'One.', 'Two.']);
  expect(countTold(dataDir, ['Buy milk.', 'Call mum.', 'Buy bread.'])).toEqual([0, 1, 1]);
  const order = readStore(dataDir, `select parts from transcript where role = 'user' order by position`);
  expect(order.map(({ parts }) => /"text":"([^"]*)"/.exec(String(parts))?.[1])).toEqual([
    ...['Begin.', 'Call mum.', 'Buy bread.'],
  ]);
  expect(findBreaches(dataDir)).toEqual([]);
});

test.concurrent('lists lanes on the page, promotes, edits and cancels their messages, and changes the mode', async ({
  expect,
  onTestFinished,
}) => {
  const settings = { networks: ['web'] } as const;
  const { telegram, dataDir, gate, signInLink, untilThreeWait } = await startBusy(
    ['One.', 'Two.'],
    onTestFinished,
    settings,
  );
  await untilThreeWait();
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  page.setDefaultTimeout(patienceMs);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(signInLink);
  await page.locator('.dot.open').first().waitFor();
  await page.locator('details.status > summary').click();
  const open = page.getByRole('button', { name: 'Lanes and waiting messages' });
  await open.waitFor();
  // A page that doesn't show them doesn't request them.
  expect(asked).not.toContain('/api/lanes');
  await open.press('Enter');

  const lane = page.locator('.lane[data-state=active]');
  await lane.getByText(/^working for \d+ s, lease renewed \d+ s ago, agent main$/).waitFor();
  const shown = () => lane.locator('.words').allInnerTexts();
  expect(await shown()).toEqual(['“Buy milk.”', '“Buy bread.”', '“Call mum.”']);
  expect(await axeViolations(page)).toEqual([]);
  const isWide =
    'document.querySelector("dialog").scrollWidth > document.querySelector("dialog").clientWidth';
  expect(await page.evaluate(isWide)).toBe(false);

  const act = (verb: string, words: string) =>
    lane.getByRole('button', { name: new RegExp(`^${verb}: #\\d+ “${words}”$`) }).press('Enter');
  const says = (text: RegExp) => page.getByRole('status').filter({ hasText: text }).waitFor();
  await act('move to the front', 'Call mum\\.');
  await says(/^#\d+ comes next: “Call mum\.”$/);
  await act('edit', 'Call mum\\.');
  const field = page.getByLabel(/^New text of #\d+/);
  await field.fill('Call <b>Mum</b>, please.');
  // Escape leaves the edit first, then the dialog.
  await page.keyboard.press('Escape');
  await field.waitFor({ state: 'detached' });
  await act('edit', 'Call mum\\.');
  await field.fill('Call <b>Mum</b>, please.');
  await page.getByRole('button', { name: 'Save' }).click();
  await says(/now reads: “Call <b>Mum<\/b>, please\.”$/);
  await act('cancel', 'Buy milk\\.');
  await says(/^Cancelled #\d+: “Buy milk\.”$/);
  await expect.poll(shown, { timeout: patienceMs }).toEqual(['“Call <b>Mum</b>, please.”', '“Buy bread.”']);
  await lane.getByLabel(/^Mode of /).selectOption('collect');
  await says(/: the mode is now collect\.$/);

  // Changes made elsewhere show up as they happen.
  telegram.userSends({ from: ada, text: '/queue cancel all' });
  await lane.locator('.words').first().waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  gate.open();
  await untilSaid(telegram, { chat: ada.id, text: 'I am done.' });
  await untilAtRest(dataDir, 6);

  const items = readStore(
    dataDir,
    `select json_extract(content, '$.text') as text, outcome, outcomeReason as reason from inbox
      where json_extract(content, '$.text') not like '/%' order by seq`,
  );
  expect(items.map(({ text, outcome, reason }) => [text, outcome, reason])).toEqual([
    ['Begin.', 'answered', null],
    ['Buy milk.', 'cancelled', 'by page'],
    ['Buy bread.', 'cancelled', `by telegram:${ada.id}`],
    ['Call <b>Mum</b>, please.', 'cancelled', `by telegram:${ada.id}`],
  ]);
  const changes = readStore(dataDir, `select kind, "by" from itemChanges where "by" = 'page' order by "at"`);
  expect(changes.map(({ kind }) => kind)).toEqual(['promote', 'edit', 'cancel']);
  expect(readStore(dataDir, 'select mode, overrides from lanes')).toEqual([
    { mode: 'collect', overrides: '{"mode":"collect"}' },
  ]);
  expect(findBreaches(dataDir)).toEqual([]);
});

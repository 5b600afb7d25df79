import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { pageToken } from './page-state.ts';
import { startStage } from './stage.ts';
import { ada, said, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

const headers = { authorization: `Bearer ${pageToken}` };
const day = 86_400;
const waits = 'select attempts, dueAt, waitAskedSince as since, waitAskedUntil as until, state from outbox';

test('retries a chat with a rate limit of a day every five minutes, and says so', {
  timeout: 300_000,
}, async () => {
  const { telegram, model, dataDir, parley } = await startStage({}, onTestFinished);
  const { url } = parley();
  model.script(() => ({ text: 'An answer.' }));
  const flood = {
    kind: 'refuse',
    code: 429,
    description: `Too Many Requests: retry after ${day}`,
    parameters: { retry_after: day },
  } as const;
  telegram.fault(flood, { method: 'sendMessage', times: 2 });
  const calls = () => telegram.calls.filter(({ method }) => method === 'sendMessage').length;
  const { messageId } = telegram.userSends({ from: ada, text: 'Hello?' });
  const part = () => readStore(dataDir, waits)[0];
  const why = async (...flags: string[]) =>
    (await runParley(['why', `telegram:${ada.id}/${messageId}`, ...flags], { PARLEY_DATA_DIR: dataDir }))
      .stdout;
  /** From the store's point of view. */
  const fiveMinutesPass = () => {
    const db = new BetterSqlite3(join(dataDir, 'parley.db'));
    db.exec(`update outbox set dueAt = dueAt - 300000 where state = 'pending'`);
    db.close();
  };

  for (const round of [1, 2]) {
    await until(() => calls() === round && part()?.state === 'pending', { what: `try ${round}` });
    const { attempts, dueAt, since, until: asked } = part() ?? {};
    expect(attempts).toBe(0);
    expect(Number(dueAt) - Number(asked)).toBe((300 - day) * 1000);
    expect(Number(asked) - Number(since)).toBeGreaterThanOrEqual(day * 1000);
    if (round === 1) fiveMinutesPass();
  }
  const story = await why();
  expect(story).toMatch(
    /its platform has been asking for a delay since \d{4}-\d\d-\d\d \S+, now until \d{4}-\d\d-\d\d \S+ \(/,
  );
  expect(story).toMatch(/ended: answered \(delivery pending\) with /);
  expect(JSON.parse(await why('--json'))).toMatchObject({
    items: [{ outcome: 'answered', isProvisional: true }],
    parts: [{ state: 'pending', askedToWait: { until: part()?.until } }],
  });
  const metrics = await (await fetch(`${url}/metrics`, { headers })).text();
  expect(metrics).toMatch(/^parley_outbox_long_waits\{cause="platform"\} 1$/m);
  expect(metrics).toMatch(/^parley_messages_provisional\{source="platform"\} 1$/m);
  const notices = async () =>
    ((await (await fetch(`${url}/api/notices`, { headers })).json()) as { notices: { kind: string }[] })
      .notices;
  expect(await notices()).toMatchObject([{ kind: 'delivery-waits' }]);

  fiveMinutesPass();
  await untilSaid(telegram, { chat: ada.id, text: 'An answer.' });
  await untilAtRest(dataDir, 1);
  expect(said(telegram, ada.id)).toEqual(['An answer.']);
  expect(await notices()).toEqual([]);
  expect(await why()).toMatch(/ended: answered with /);
  expect(findBreaches(dataDir)).toEqual([]);
});

import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { onTestFinished, test } from 'vitest';
import { readStore } from './conservation.ts';
import { startStage } from './stage.ts';
import { bob, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

/** Changes the database behind the running gateway's back. */
function change(dataDir: string, sql: string): void {
  const db = new BetterSqlite3(join(dataDir, 'parley.db'));
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

test('alerts the owner and reports not ready while every lane fails', {
  timeout: 300_000,
}, async ({ expect }) => {
  const { telegram, dataDir, parley } = await startStage({}, onTestFinished);
  telegram.userSends({ from: bob, text: 'Is all well?' });
  await untilSaid(telegram, { chat: bob.id, text: 'You said: Is all well?' });
  const ready = async () => {
    const answer = await fetch(`${parley().url}/readyz`);
    return (await answer.json()) as { missing?: string[]; components?: { name: string; reason?: string }[] };
  };
  expect((await ready()).missing).toBeUndefined();

  change(dataDir, 'alter table "sessionUsage" rename to "gone"');
  telegram.userSends({ from: bob, text: 'And now?' });
  await until(async () => (await ready()).missing?.includes('work') === true, { what: 'not ready' });
  const reason = (await ready()).components?.find(({ name }) => name === 'work')?.reason;
  expect(reason).toMatch(/telegram:dm:502 has failed \d+ times in a row: .*no such table: .*sessionUsage/);
  const alerts = () =>
    readStore(dataDir, `select subject, details from ownerNotices where subject like 'part-failing %'`);
  await until(() => alerts().length > 0, { what: 'the alert' });
  expect(alerts()).toHaveLength(1);
  expect(String(alerts()[0]?.details)).toContain('no such table');

  change(dataDir, 'alter table "gone" rename to "sessionUsage"');
  await until(async () => (await ready()).missing === undefined, { what: 'ready again' });
  telegram.userSends({ from: bob, text: 'And after that?' });
  await untilSaid(telegram, { chat: bob.id, text: /And after that\?/ });
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ownAddresses, phoneAddress } from '../../src/server/http-server.ts';
import { migrationNames } from '../../src/store/migrate.ts';
import { laterStep, openLater } from '../backup/later-version.ts';
import { runParley } from '../cli/run-parley.ts';
import { send } from '../server/a-server.ts';
import { readStore } from './conservation.ts';
import { aFreshHome, type FreshHome } from './fresh-home.ts';

/** Writes to the bot and waits for the answer. */
async function ask({ telegram }: FreshHome, text: string): Promise<void> {
  telegram.people.sends({ from: { id: 501, is_bot: false, first_name: 'Ann' }, text });
  await telegram.waitFor(() => telegram.botMessages(501).find((message) => message.text.includes(text)));
}

function questionsIn(dataDir: string): readonly string[] {
  const rows = readStore(dataDir, `select content from inbox where kind = 'message'`);
  return [...new Set(JSON.stringify(rows).match(/question-\d/g))];
}

test("serves an operator's first hour: phone, names, reload, doctor, backup, kill -9, restore, upgrade and downgrade", {
  timeout: 300_000,
}, async () => {
  const home = await aFreshHome({ PARLEY_HOST: '0.0.0.0', PARLEY_DM_POLICY: 'open' }, onTestFinished);
  const { dataDir, parley } = home;
  const gateway = await home.start();
  const port = Number(new URL(gateway.url).port);
  const statusOf = async (host: string) =>
    (await send({ port, path: '/', headers: { host, accept: 'text/html' } })).status;

  // A phone uses the machine's own address; a host name has to be set, which a reload applies.
  const [own = '127.0.0.1'] = ownAddresses('0.0.0.0');
  expect(await statusOf(`${own}:${port}`)).toBe(200);
  const phone = phoneAddress('0.0.0.0', port);
  const wayForPhone = phone === undefined ? 'On a phone, use this machine' : `same network:\n\n  ${phone}/`;
  expect((await parley('signin')).stdout).toContain(wayForPhone);
  expect(await statusOf('parley.home')).toBe(421);
  await home.write('parley.config.json', '{ "allowedHosts": ["parley.home"], "port": 1, /* later */ }');
  const reloaded = await parley('reload');
  expect(reloaded.stdout).toBe('Applied: allowedHosts.\n');
  expect(await statusOf('parley.home')).toBe(200);
  expect(await statusOf(`parley.home:${port}`)).toBe(200);
  writeFileSync(join(home.path, 'parley.config.json'), '{ "allowedHost": [] }');
  process.kill(gateway.pid, 'SIGHUP');
  await expect.poll(() => gateway.output()).toContain('Did you mean \\"allowedHosts\\"');
  await home.write('parley.config.json', '{ "logLevels": "info" }');
  // As `parley reload` tells the other processes.
  process.kill(gateway.pid, 'SIGUSR2');
  await expect.poll(() => gateway.output()).toContain('Did you mean \\"logLevel\\"');
  await home.write('parley.config.json', '{}');

  // Without the service's variables `doctor` warns about it and asks the gateway instead of guessing.
  const blind = await runParley(['doctor'], { PARLEY_DATA_DIR: dataDir });
  expect(blind.stdout).toMatch(/warning +environment .*TELEGRAM_BOT_TOKEN/);
  expect(blind.stdout).toMatch(/ok +telegram +on; .*according to the gateway/);

  await ask(home, 'question-1');
  const backup = await parley('backup');
  expect(backup).toMatchObject({ code: 0, stdout: expect.stringContaining('read back') });
  const [, name = ''] = /parley.mjs restore (\S+)/.exec(backup.stdout) ?? [];
  await ask(home, 'question-2');
  expect((await parley('restore', name)).stderr).toContain(`in use by process ${gateway.pid}`);
  await gateway.kill();

  expect(await parley('restore', name)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('replaced-'),
  });
  expect(questionsIn(dataDir)).toEqual(['question-1']);

  // A later version changes the schema after a backup; this version works on the result, and can go back.
  await (await openLater(dataDir)).close();
  expect(readStore(dataDir, 'select name from kysely_migration')).toContainEqual({ name: laterStep });
  const again = await home.start();
  await ask(home, 'question-3');
  await again.kill();
  const backups = JSON.parse((await parley('restore', '--json')).stdout) as { kind: string; name: string }[];
  const before = backups.find(({ kind }) => kind === 'before-migration');
  expect(await parley('restore', before?.name ?? '')).toMatchObject({ code: 0 });
  expect(readStore(dataDir, 'select name from kysely_migration')).toEqual(
    migrationNames.map((name) => ({ name })),
  );
  expect(questionsIn(dataDir)).toEqual(['question-1']);
});

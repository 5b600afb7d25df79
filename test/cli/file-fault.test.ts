import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';

/** Runs `parley …` as somebody who isn't root, whose permissions count. */
function parleyAsOther(home: string, ...args: readonly string[]) {
  const other = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const { status, stderr } = spawnSync(process.execPath, ['../../bin/parley.mjs', ...args], {
    ...{ cwd: import.meta.dirname, encoding: 'utf8', ...other },
    env: { PATH: process.env.PATH, HOME: '/tmp', PARLEY_TEST_HOME: home, PARLEY_PORT: '0' },
  });
  return { status, stderr };
}

/** Returns a home whose folder can be entered by everyone and written by nobody else. */
function aHome() {
  const home = aFolder();
  chmodSync(home, 0o555);
  return home;
}

it("names the folder that can't be written in one sentence, whatever the command", () => {
  const home = aHome();
  expect(parleyAsOther(home, 'agent', 'init')).toEqual({
    status: 1,
    stderr: `${home} isn't writable for you, so Parley can't write ${join(home, 'data')}.\n`,
  });
});

it("reports another user's data folder as unreadable instead of missing", () => {
  const home = aFolder();
  mkdirSync(join(home, 'data'));
  writeFileSync(join(home, 'data/parley.db'), '');
  chmodSync(join(home, 'data'), 0o000);
  chmodSync(home, 0o755);
  const stderr = `The data folder ${join(home, 'data')} isn't readable for you. Run this as the user that Parley runs as.\n`;
  for (const command of [['status'], ['logs'], ['sessions', 'list'], ['backup'], ['queue', 'cancel', '1']])
    expect(parleyAsOther(home, ...command), command.join(' ')).toEqual({ status: 1, stderr });
});

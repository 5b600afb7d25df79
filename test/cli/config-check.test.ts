import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

/** Runs `parley config check` on a parley.config.json. */
function check(settings: object) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const path = join(folder, 'parley.config.json');
  writeFileSync(path, JSON.stringify(settings));
  const env = {
    PATH: process.env.PATH,
    PARLEY_CONFIG: path,
    TELEGRAM_BOT_TOKEN: `7000001:${'aB3'.repeat(12)}`,
  };
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['../../bin/parley.mjs', 'config', 'check'],
    {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      env,
    },
  );
  return { status, stdout, stderr, path };
}

it('finds nothing wrong with what is right', () => {
  const { path, ...result } = check({ channels: { telegram: { pollSeconds: 5 } } });
  expect(result).toEqual({ status: 0, stdout: `The configuration is valid (${path}).\n`, stderr: '' });
});

it('names what is wrong in the settings of a channel and of a plugin', () => {
  const { status, stderr } = check({
    channels: { telegram: { pollSeconds: 'often' } },
    plugins: { files: { nonsense: 1 } },
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /2 problems:\n {2}- channels\.telegram\.pollSeconds: .*number.*\n {2}- plugins\.files: .*"nonsense"/,
  );
});

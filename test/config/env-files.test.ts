import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { settingsSources } from '../../src/cli/settings-sources.ts';
import { withEnvFiles } from '../../src/config/env-files.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { aFolder } from '../support/own-folder.ts';

/** Returns a folder with its own `.env`, containing a folder named `data` with another one. */
function aCheckout({ beside, inData }: { beside?: string | Buffer; inData?: string }): string {
  const folder = aFolder();
  mkdirSync(join(folder, 'data'));
  if (beside !== undefined) writeFileSync(join(folder, '.env'), beside);
  if (inData !== undefined) writeFileSync(join(folder, 'data/.env'), inData);
  return folder;
}

function load(folder: string, environment: NodeJS.ProcessEnv = {}) {
  const { values, files, problems } = withEnvFiles(environment, folder);
  return loadConfig({ ...readEnvironment(values), files, problems }, folder);
}

it('ranks the environment first, then the .env beside the checkout, then the one in the data folder', () => {
  const folder = aCheckout({
    beside:
      '# comment\nPARLEY_DATA_DIR=data\nexport PARLEY_PORT="1001"\nPARLEY_HOST=\nPARLEY_LOG_LEVEL=warn\n',
    inData: 'PARLEY_PORT=1002\nPARLEY_HOST=127.0.0.2\nPARLEY_LOG_LEVEL=debug\n',
  });
  const config = load(folder, { PARLEY_LOG_LEVEL: 'error' });
  expect(config).toMatchObject({ port: 1001, host: '127.0.0.2', logLevel: 'error' });
  expect(settingsSources(config, folder)).toBe(
    '.env (2 values; set elsewhere and ignored here: PARLEY_LOG_LEVEL), ' +
      'data/.env (1 value; set elsewhere and ignored here: PARLEY_LOG_LEVEL, PARLEY_PORT)',
  );
});

it('names the .env file of a wrong value', () => {
  const folder = aCheckout({ beside: 'PARLEY_PORT=high\nTELEGRAM_BOT_TOKEN=no\n' });
  const path = join(folder, '.env');
  expect(() => load(folder)).toThrow(`PARLEY_PORT in ${path}: "high"`);
  expect(() => load(folder)).toThrow(`TELEGRAM_BOT_TOKEN in ${path}`);
  expect(() => load(folder, { PARLEY_PORT: 'low' })).toThrow('PARLEY_PORT in the environment: "low"');
});

it('says what to do about an unusable .env file', () => {
  const large = aCheckout({ beside: Buffer.alloc(64 * 1024 + 1, '#') });
  expect(() => load(large)).toThrow(/\.env: is larger than 64 KB; shorten it/);
  const folder = aCheckout({});
  mkdirSync(join(folder, '.env'));
  expect(() => load(folder)).toThrow(/\.env: can't be read/);
});

it('refuses values that would be cut or run on, and reads files from other systems', () => {
  const cut = aCheckout({ beside: 'PARLEY_HOST=127.0.0.2 # here\nMY_KEY=abc#def\nexport A=1#2\n' });
  expect(() => load(cut)).toThrow(
    /2 problems:\n.*\.env: MY_KEY continues after a #.*quote the value.*\n.*\.env: A /,
  );
  const open = aCheckout({ beside: 'MY_KEY="abc\nPARLEY_PORT="1001"\n' });
  expect(() => load(open)).toThrow(/\.env: MY_KEY continues on the next line; close its quotes/);
  const token = 'Zx9#mQ2vB7nK4pL8wR3tY6uJ1hG5fD0s';
  const quoted = aCheckout({
    beside: `\uFEFFPARLEY_PORT=1001\r\nexport PARLEY_TOKEN="${token}"\r\n# A=1#2\r\n`,
  });
  const config = load(quoted);
  expect([config.port, config.token?.reveal()]).toEqual([1001, token]);
  const wide = aCheckout({ beside: Buffer.from('\uFEFFPARLEY_PORT=1001\r\n', 'utf16le') });
  expect(() => load(wide)).toThrow(/\.env: isn't UTF-8 text; save it as UTF-8/);
});

it('starts without a .env file', () => {
  const config = load(aCheckout({}));
  expect(config.envFiles).toEqual([]);
  expect(settingsSources(config)).toBe('defaults and the environment');
});

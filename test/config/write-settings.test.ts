import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { withVariables, writeSettings, writeVariables } from '../../src/config/write-settings.ts';
import { aFolder } from '../support/own-folder.ts';

let home: string;
beforeEach(async () => {
  home = aFolder();
});
const nowhere = readEnvironment({});

describe('the configuration file', () => {
  it('creates the configuration file in its place or where PARLEY_CONFIG says', async () => {
    const path = join(home, 'parley.config.json');
    expect((await writeSettings({ model: 'demo' }, nowhere, home)).path).toBe(path);
    const named = readEnvironment({ PARLEY_CONFIG: join(home, 'deep', 'mine.json') });
    const written = await writeSettings({ model: 'demo' }, named, home);
    expect(JSON.parse(await readFile(written.path, 'utf8'))).toEqual({ model: 'demo' });
    expect(written.path).toBe(join(home, 'deep', 'mine.json'));
  });

  it('keeps the other settings of the file and extends its lists', async () => {
    const path = join(home, 'parley.config.json');
    const before = { owners: ['telegram:1'], access: { dmPolicy: 'open', allowGroups: ['telegram:-5'] } };
    await writeFile(path, JSON.stringify(before), { mode: 0o640 });
    const change = { owners: ['telegram:1', 'signal:x'], access: { groupPolicy: 'open' } };
    expect((await writeSettings(change, nowhere, home)).isWritten).toBe(true);
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({
      owners: ['telegram:1', 'signal:x'],
      access: { ...before.access, groupPolicy: 'open' },
    });
    expect((await stat(path)).mode & 0o777).toBe(0o640);
  });

  it('does not touch a broken configuration file', async () => {
    const path = join(home, 'parley.config.json');
    await writeFile(path, '{ "owners": [');
    await expect(writeSettings({ model: 'demo' }, nowhere, home)).rejects.toThrow('config check');
    expect(await readFile(path, 'utf8')).toBe('{ "owners": [');
  });
});

describe('the .env file', () => {
  it('keeps the lines of .env, sets each variable once and makes it private', async () => {
    const path = join(home, '.env');
    await writeFile(path, '# mine\nREDIS_URL=redis://x\nexport OPENAI_API_KEY=old\nOPENAI_API_KEY=older');
    await writeVariables({ OPENAI_API_KEY: 'new-key', TELEGRAM_BOT_TOKEN: '1:a' }, nowhere, home);
    expect(await readFile(path, 'utf8')).toBe(
      '# mine\nREDIS_URL=redis://x\nOPENAI_API_KEY=new-key\nTELEGRAM_BOT_TOKEN=1:a\n',
    );
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('writes to the .env file that takes precedence', async () => {
    const path = join(home, 'data', '.env');
    const environment = readEnvironment({ PARLEY_DATA_DIR: join(home, 'data') });
    expect(await writeVariables({ OPENAI_API_KEY: 'k' }, environment, home)).toBe(path);
    const files = [{ path: join(home, 'first.env'), names: [], hidden: [] }];
    const next = await writeVariables({ OPENAI_API_KEY: 'k' }, { ...environment, files }, home);
    expect(next).toBe(join(home, 'first.env'));
  });

  it.each(['plain', 'with space', 'a#b', "it's", 'say "x"', '$HOME', '`x`', ''])(
    'reads %j back from .env',
    (value) => {
      expect(parseEnv(withVariables('A=1\n', { B: value }))).toEqual({ A: '1', B: value });
    },
  );

  it('refuses a value that would become another line of .env', () => {
    expect(() => withVariables('', { A: 'x\nB=1' })).toThrow('line breaks');
  });
});

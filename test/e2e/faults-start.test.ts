import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, test } from 'vitest';
import { startStage } from './stage.ts';
import { type Attempt, tryToStart } from './start-attempt.ts';

type Mistake = Attempt & { readonly what: string; readonly says: RegExp };

/** Mistakes found while the configuration is read, which reports all of them together. */
const inConfiguration: readonly Mistake[] = [
  {
    what: 'a token that is the word undefined',
    env: { TELEGRAM_BOT_TOKEN: 'undefined' },
    says: /TELEGRAM_BOT_TOKEN.*placeholder.*@BotFather/,
  },
  {
    what: 'a key that was never filled in',
    env: { ANTHROPIC_API_KEY: 'your-api-key-here' },
    says: /ANTHROPIC_API_KEY.*placeholder.*unset it/,
  },
  {
    what: 'a weak access token',
    env: { PARLEY_TOKEN: '1234' },
    says: /PARLEY_TOKEN.*22 characters.*unset it/,
  },
  {
    what: 'a port that is a word',
    env: { PARLEY_PORT: 'eighty' },
    says: /PARLEY_PORT.*"eighty".*write a number/,
  },
  {
    what: 'a proxy that would be passed by',
    env: { HTTPS_PROXY: 'http://proxy.example:3128' },
    says: /HTTPS_PROXY.*can't connect through one yet.*NO_PROXY=\*/,
  },
  {
    what: 'a misspelt policy',
    env: { PARLEY_DM_POLICY: 'opne' },
    says: /PARLEY_DM_POLICY.*"opne".*Did you mean "open"\?/,
  },
  {
    what: 'a misspelt variable',
    env: { PARLEY_OWNER: 'telegram:1' },
    says: /PARLEY_OWNER .*Did you mean PARLEY_OWNERS\?/,
  },
  {
    what: 'an owner by name',
    env: { PARLEY_OWNERS: 'telegram:@ada' },
    says: /PARLEY_OWNERS.*can change hands.*id/,
  },
  {
    what: 'a database of another kind',
    env: { DATABASE_URL: 'mysql://a@b/c' },
    says: /DATABASE_URL.*isn't a PostgreSQL.*postgres:\/\//,
  },
  {
    what: 'three mistakes in the file',
    files: {
      'parley.config.json':
        '{ "prot": 1, "run": { "turns": "many" }, "channels": { "telegram": { "token": "123:abc" } } }',
    },
    says: /channels\.telegram\.token.*TELEGRAM_BOT_TOKEN[\s\S]*run\.turns in .*"many" isn't a number[\s\S]*"prot".*Did you mean "port"/,
  },
];

const mistakes: readonly Mistake[] = [
  {
    what: 'a file that is not JSON',
    files: { 'parley.config.json': '{ "port": 1,\n  oops }' },
    says: /parley\.config\.json: isn't valid JSON at line 2.*fix it/,
  },
  {
    what: 'a file that is not there',
    env: { PARLEY_CONFIG: 'nowhere.json' },
    says: /nowhere\.json: doesn't exist.*PARLEY_CONFIG/,
  },
  {
    what: 'no Redis to start',
    env: { PATH: '/nowhere' },
    says: /redis-server (?:is not|isn't) installed.*[\s\S]*REDIS_URL/,
  },
  {
    what: 'a data folder that is a file',
    env: { PARLEY_DATA_DIR: './a-file' },
    files: { 'a-file': 'x' },
    says: /a-file.*PARLEY_DATA_DIR/,
  },
  {
    what: 'a database file that is none',
    files: { 'parley.db': 'this is a shopping list, and not at all a database' },
    says: /parley\.db.*not a database/,
  },
];

/** Problems that may be over in a moment, so the start waits. */
const absences: readonly Mistake[] = [
  {
    what: 'a PostgreSQL that is not there',
    env: { DATABASE_URL: 'postgres://me:wH2kd8s0aQ@127.0.0.1:1/parley' },
    says: /can't start yet: PostgreSQL.*ECONNREFUSED.*DATABASE_URL/,
  },
  {
    what: 'a Redis that is not there',
    env: { REDIS_URL: 'redis://127.0.0.1:1' },
    says: /can't start yet: Redis.*ECONNREFUSED.*REDIS_URL/,
  },
  {
    what: 'a folder of a channel that cannot be made',
    files: { channels: 'x' },
    says: /running[\s\S]*web +trouble \(.*channels\/web can't be created \(ENOTDIR\).*write there/,
  },
];

describe.concurrent("a start that can't succeed", () => {
  test.for(absences)(
    'waits on $what, says what to do, and can be stopped',
    async ({ says, ...attempt }, { expect }) => {
      const { code, words } = await tryToStart({ ...attempt, until: says });
      expect(words).toMatch(says);
      expect(code).toBe(0);
      expect(words).not.toMatch(/\n\s+at |wH2kd8s0aQ/);
    },
  );

  test.for(mistakes)(
    'ends at once on $what and says what to do',
    async ({ says, ...attempt }, { expect }) => {
      const { code, words } = await tryToStart(attempt);
      expect(words).toMatch(says);
      expect(code).toBe(1);
      expect(words).not.toMatch(/\n\s+at |wH2kd8s0aQ/);
    },
  );

  test('ends at once on invalid settings and says what to do about each', async ({ expect }) => {
    const all = (part: 'env' | 'files') =>
      Object.fromEntries(inConfiguration.flatMap((mistake) => Object.entries(mistake[part] ?? {})));
    const { code, words } = await tryToStart({ env: all('env'), files: all('files') });
    for (const { what, says } of inConfiguration) expect(words, what).toMatch(says);
    expect(words).toContain('has 12 problems:');
    expect(code).toBe(1);
    expect(words).not.toMatch(/\n\s+at |123:abc/);
  });

  test('ends at once on a port that is taken and says what to do', async ({ expect, onTestFinished }) => {
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise<void>((resolve) => squatter.close(() => resolve())));
    const { port } = squatter.address() as AddressInfo;
    const { code, words } = await tryToStart({ env: { PARLEY_PORT: String(port) } });
    expect(words).toMatch(new RegExp(`${port}.*PARLEY_PORT`));
    expect(code).toBe(1);
  });

  test('ends at once on a data folder that another Parley uses and names that process', async ({
    expect,
    onTestFinished,
  }) => {
    const { dataDir, parley } = await startStage({}, onTestFinished);
    const { code, words } = await tryToStart({ env: { PARLEY_DATA_DIR: dataDir } });
    expect(words).toContain(`${dataDir} is in use by process ${parley().pid}.`);
    expect(words).toContain('PARLEY_DATA_DIR');
    expect(code).toBe(1);
    process.kill(parley().pid, 'SIGSTOP');
    const beside = await tryToStart({ env: { PARLEY_DATA_DIR: dataDir } });
    process.kill(parley().pid, 'SIGCONT');
    expect([beside.code, beside.words]).toEqual([1, words]);
  });
});

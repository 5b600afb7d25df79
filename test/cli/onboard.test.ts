import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startTelegramServer } from '../platforms/telegram/server.ts';
import { keys, typeTo } from './typed-answers.ts';

const { enter, down, leave } = keys;
const key = 'sk-ant-api03-0000000001';
const slow = 300_000;

let claude: AnthropicServer;
let telegram: Awaited<ReturnType<typeof startTelegramServer>>;
let home: string;
beforeAll(async () => {
  [claude, telegram] = await Promise.all([startAnthropicServer({ keys: [key] }), startTelegramServer()]);
});
afterAll(() => Promise.all([claude.close(), telegram.close()]));
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'parley-onboard-'));
  onTestFinished(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));
});

const onboard = () =>
  typeTo(['onboard'], {
    cwd: home,
    env: {
      PARLEY_TEST_HOME: home,
      ANTHROPIC_BASE_URL: claude.url,
      TELEGRAM_API_ROOT: telegram.apiRoot,
      PARLEY_PORT: '1',
    },
  });

describe('parley onboard', () => {
  it('tries each credential as it is typed, and writes what was answered', { timeout: slow }, async () => {
    await writeFile(join(home, '.env'), '# mine\nPARLEY_LOG_LEVEL=warn\n');
    await writeFile(join(home, 'parley.config.json'), '{"language":"de"}');
    const person = onboard();
    await person.answer('Which model answers?', enter);
    await person.answer(/◆ +API key of Anthropic/, `sk-ant-wrong-one${enter}`);
    await person.answer('Anthropic rejects it: 401 invalid x-api-key', '');
    await person.answer('Type it again', enter);
    await person.answer(/◆ +API key of Anthropic/, `${key}${enter}`);
    await person.answer('Anthropic accepts it.', '');
    await person.answer('Which network', enter);
    await person.answer('Token of the bot', `${telegram.token}${enter}`);
    await person.answer('on, as', '');
    await person.answer('Who is the owner', `${down}${enter}`);
    await person.answer('Your permanent id on Telegram', `@ada${enter}`);
    await person.answer('Names can change hands', `${'\u007f'.repeat(4)}4711${enter}`);
    await person.answer('Which groups', enter);
    expect(await person.ended).toBe(0);

    expect(person.shown()).toContain(join(home, 'parley.config.json'));
    expect(person.shown()).toContain('npm start');
    for (const secret of [key, telegram.token]) expect(person.shown()).not.toContain(secret);
    expect(JSON.parse(await readFile(join(home, 'parley.config.json'), 'utf8'))).toEqual({
      language: 'de',
      owners: ['telegram:4711'],
      access: { groupPolicy: 'allowlist' },
    });
    expect(await readFile(join(home, '.env'), 'utf8')).toBe(
      `# mine\nPARLEY_LOG_LEVEL=warn\nANTHROPIC_API_KEY=${key}\nTELEGRAM_BOT_TOKEN=${telegram.token}\n`,
    );
    expect((await stat(join(home, '.env'))).mode & 0o777).toBe(0o600);
    expect(claude.requests).toEqual([]);
    expect(telegram.calls.filter(({ method }) => method !== 'getMe')).toEqual([]);
  });

  it('changes nothing for a person who leaves', { timeout: slow }, async () => {
    const person = onboard();
    await person.answer('Which model answers?', `${down}${down}${down}${enter}`);
    await person.answer('Which network', leave);
    expect(await person.ended).toBe(1);
    expect(person.shown()).toContain('Nothing was changed.');
    expect(await readdir(home)).toEqual([]);
  });
});

/** Threat 7: secrets stay where they belong, even while everything that uses one fails. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { it } from 'vitest';
import { untilAtRest } from '../e2e/conservation.ts';
import { startParley } from '../e2e/parley-process.ts';
import { privateSocket } from '../e2e/redis-faults.ts';
import { startStage } from '../e2e/stage.ts';
import { ada, untilSaid } from '../e2e/telegram-chat.ts';
import { until } from '../e2e/until.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startOpenAiServer } from '../platforms/openai/server.ts';
import { startTelegramServer } from '../platforms/telegram/server.ts';
import { aFolder } from '../support/own-folder.ts';

/** Nothing else looks like these, so a single hit anywhere is a leak. */
const canaries = {
  telegramToken: '7000001:CANARY-telegram-token-0123456789abcdef',
  firstKey: 'sk-ant-CANARY-first-key+with/odd=signs-123456',
  secondKey: 'sk-ant-CANARY-second-key-7890123456789012',
  pageToken: 'CANARY-page-token-Zx81qPw0mN3vB7',
  redisPassword: 'CANARY-redis-pa55w@rd!',
  databasePassword: 'CANARY-database-pa55w:rd',
  secondBot: '7000002:CANARY-second-telegram-token-0123456789',
  discordToken: 'CANARY-discord-id-5.CANARY-1.CANARY-discord-token-0123456789',
  webhookSecret: 'CANARY-webhook-secret-Lm4Tz9',
  otherServersKey: 'sk-CANARY-other-servers-key-0123456789abcdef',
  serverHeader: 'CANARY-header-of-a-model-server-55',
  traceHeader: 'CANARY-header-of-traces-77',
} as const;

/** Besides Telegram and the model: services that refuse, and services that can't be reached. */
const unwell = {
  env: {
    TELEGRAM_BOT_TOKEN_SECOND: canaries.secondBot,
    DISCORD_BOT_TOKEN: canaries.discordToken,
    DISCORD_API_BASE: 'http://127.0.0.1:1/api',
    SIGNAL_API_URL: 'http://127.0.0.1:1',
    SIGNAL_NUMBER: '+491700000001',
    SIGNAL_WEBHOOK_SECRET: canaries.webhookSecret,
    OPENAI_API_KEY: canaries.otherServersKey,
    SERVER_HEADERS: `x-server-key=${canaries.serverHeader}`,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=${canaries.traceHeader}`,
  },
  config: {
    tracing: { endpoint: 'http://127.0.0.1:1' },
    providers: { openai: { headersEnv: 'SERVER_HEADERS' } },
    models: { spare: { provider: 'openai', id: 'gpt-6-luna' } },
    channels: { telegram: { pollSeconds: 5, accounts: { second: {} } } },
  },
};

it.concurrent('shows no secret in logs, store, requests, replies or answers, whatever fails', {
  timeout: 300_000,
}, async ({ expect, onTestFinished }) => {
  const telegram = await startTelegramServer({ token: canaries.telegramToken });
  const model = await startAnthropicServer({ keys: [canaries.firstKey, canaries.secondKey] });
  const other = await startOpenAiServer({ keys: ['none-of-ours'] });
  onTestFinished(async () => {
    await Promise.all([telegram.close(), model.close(), other.close()]);
  });
  const env = {
    ...unwell.env,
    OPENAI_BASE_URL: other.url,
    ANTHROPIC_API_KEY: `${canaries.firstKey},${canaries.secondKey}`,
    PARLEY_TOKEN: canaries.pageToken,
  };
  const settings = {
    telegram,
    model,
    env,
    config: { access: { dmPolicy: 'open' }, payloadLog: { enabled: true }, ...unwell.config },
  };
  const { dataDir, parley } = await startStage(settings, onTestFinished);
  const { url, signInLink, pid } = parley();
  const say = (text: string) => telegram.userSends({ from: ada, text });

  // The model: the first key is refused, and the refusal repeats it; then both keys; then every call fails.
  const refused = {
    status: 401,
    errorType: 'authentication_error',
    message: `invalid x-api-key: ${canaries.firstKey}`,
  };
  model.script([refused, { text: 'by the second key' }]);
  say('one');
  await untilSaid(telegram, { chat: ada.id, text: 'by the second key' });
  model.script(() => ({ ...refused, message: `invalid: ${canaries.secondKey}` }));
  say('two');
  await telegram.waitFor(() => telegram.botMessages(ada.id).length >= 2);
  model.script(() => ({ status: 400, message: `bad header Bearer ${canaries.firstKey}` }));
  say('three');
  await telegram.waitFor(() => telegram.botMessages(ada.id).length >= 3);

  // Telegram: every way a call can go wrong, with the call's address in its text.
  model.script(() => ({ text: 'over a broken line' }));
  const description = `Not Found: ${telegram.apiRoot}/bot${canaries.telegramToken}/sendMessage`;
  telegram.fault({ kind: 'refuse', code: 500, description }, { method: 'sendMessage' });
  telegram.fault({ kind: 'cut' }, { method: 'getUpdates', times: 2 });
  telegram.fault({ kind: 'page', code: 502 }, { method: 'getUpdates' });
  say('four');
  await untilSaid(telegram, { chat: ada.id, text: 'over a broken line' });
  telegram.fault(
    { kind: 'refuse', code: 400, description: `Bad Request: ${description}` },
    { method: 'sendMessage' },
  );
  say('five');
  await untilAtRest(dataDir, 5);
  // The other server refuses the key and repeats it.
  say('/model spare');
  say('six');
  await untilAtRest(dataDir, 7);
  expect(other.requests.length).toBeGreaterThan(0);

  const answers = await knockOnEveryDoor(url, signInLink);
  expect(answers.length).toBeGreaterThan(10);
  const keptInRedis = await readRedis(privateSocket(dataDir));
  telegram.revokeToken();
  telegram.userSends({ from: ada, text: 'after the token is gone' });
  await until(() => /unauthori[sz]ed/i.test(readFileSync(join(dataDir, 'test.log'), 'utf8')), {
    what: 'the revoked token in the log',
  });
  const shown = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  await parley().stop();

  expect(leaksIn('answers over HTTP', answers.join('\n'))).toEqual([]);
  expect(leaksIn('messages to people', JSON.stringify(telegram.messages(ada.id)))).toEqual([]);
  expect(leaksIn('requests to the model', JSON.stringify(model.requests.map(({ body }) => body)))).toEqual(
    [],
  );
  expect(leaksIn('command line', shown)).toEqual([]);
  expect(leaksIn('Redis', keptInRedis)).toEqual([]);
  expect(existsSync(join(dataDir, 'payloads.jsonl'))).toBe(true);
  const files = filesIn(dataDir).map((path) => ({ path, text: readFileSync(path, 'latin1') }));
  expect(files.flatMap(({ path, text }) => leaksIn(path, text))).toEqual([]);
  // Only the browser keeps its session cookie.
  const [, cookie = 'no cookie'] = /set-cookie","[^"=]+=([^";]{20,});/.exec(answers.join('\n')) ?? [];
  expect(cookie).not.toBe('no cookie');
  expect(files.filter(({ text }) => text.includes(cookie)).map(({ path }) => path)).toEqual([]);
});

it.concurrent('shows no password of an address that cannot be reached', { timeout: 300_000 }, async ({
  expect,
  onTestFinished,
}) => {
  const broken = {
    REDIS_URL: `redis://:${encodeURIComponent(canaries.redisPassword)}@127.0.0.1:1`,
    DATABASE_URL: `postgres://parley:${encodeURIComponent(canaries.databasePassword)}@127.0.0.1:1/parley`,
  };
  const away = /unreachable|not reachable|ECONNREFUSED/;
  for (const [name, address] of Object.entries(broken)) {
    const settings = { env: { [name]: address } };
    const started = startStage(settings, onTestFinished).then(
      async ({ dataDir, parley }) => {
        const { url, signInLink } = parley();
        const answers = await knockOnEveryDoor(url, signInLink);
        await until(() => away.test(readFileSync(join(dataDir, 'test.log'), 'utf8')), {
          what: `${name} in the log`,
        });
        await parley().stop();
        return [...answers, ...filesIn(dataDir).map((path) => readFileSync(path, 'latin1'))].join('\n');
      },
      (error: unknown) => String(error),
    );
    const seen = await started;
    expect(seen).toMatch(away);
    expect(leaksIn(name, seen)).toEqual([]);
  }
});

it.concurrent('says why it does not start without showing the wrong value', { timeout: 300_000 }, async ({
  expect,
  onTestFinished,
}) => {
  const wrong = {
    TELEGRAM_BOT_TOKEN: canaries.telegramToken.slice(0, 30),
    PARLEY_TOKEN: canaries.pageToken.slice(0, 20),
    REDIS_URL: `ftp://:${encodeURIComponent(canaries.redisPassword)}@127.0.0.1`,
    DATABASE_URL: `mysql://root:${encodeURIComponent(canaries.databasePassword)}@127.0.0.1`,
  };
  const reason = await startParley({ dataDir: aFolder(onTestFinished), env: wrong }).then(
    () => 'it started',
    (error: unknown) => String(error),
  );
  for (const name of Object.keys(wrong)) expect(reason).toContain(name);
  expect(reason).not.toContain('CANARY');
});

/** Returns all of its contents, as Redis's own dump writes them. */
async function readRedis(path: string): Promise<string> {
  const redis = new Redis({ path });
  const dumps = (await redis.keys('*')).map(async (key) => `${key} ${await redis.dumpBuffer(key)}`);
  const kept = (await Promise.all(dumps)).join('\n');
  redis.disconnect();
  return kept;
}

/** Makes every kind of request, signed in and not, and collects headers and bodies. */
async function knockOnEveryDoor(url: string, signInLink: string): Promise<readonly string[]> {
  const bearer = { authorization: `Bearer ${canaries.pageToken}` };
  const wrong = { authorization: 'Bearer wrong-token-wrong-token-wrong' };
  const paths = [
    '/',
    '/healthz',
    '/readyz',
    '/api/status',
    '/api/sessions',
    '/api/sign-ins',
    '/api/notices',
    '/api/outbox',
    '/metrics',
    '/channels/signal/webhook/wrong',
    '/channels/web/chat',
    '/none',
    '/%2e%2e/token',
  ];
  const requests = paths.flatMap((path) =>
    [bearer, wrong, {}].map((headers) => ({ path, init: { headers } })),
  );
  const posts = ['/api/sign-in', '/api/status'].map((path) => ({
    path,
    init: {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json', 'x-parley': '1' },
      body: '{"token":"x"',
    },
  }));
  const seen: string[] = [];
  for (const { path, init } of [...requests, ...posts]) {
    const answer = await fetch(`${url}${path}`, { ...init, redirect: 'manual' });
    seen.push(JSON.stringify([...answer.headers]), await answer.text());
  }
  // A gateway that is still waiting to start signs nobody in.
  if (signInLink === '') return seen;
  const signedIn = await fetch(signInLink, { redirect: 'manual' });
  seen.push(JSON.stringify([...signedIn.headers]), await signedIn.text());
  return seen;
}

/** Finds each canary in the encodings in which a value travels. */
function leaksIn(where: string, text: string): readonly string[] {
  return Object.entries(canaries).flatMap(([name, value]) =>
    spellings(value)
      .filter((spelling) => text.includes(spelling))
      .map((spelling) => `${name} as ${spelling} in ${where}: ${around(text, spelling)}`),
  );
}

function spellings(value: string): readonly string[] {
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.from('x'.repeat(offset) + value)
      .toString('base64')
      .slice(offset === 0 ? 0 : 4, -4),
  );
  const json = JSON.stringify(value).slice(1, -1);
  // To whoever finds it, half a secret is as good as all of it.
  return [
    ...new Set([
      value,
      json,
      encodeURIComponent(value),
      Buffer.from(value).toString('hex'),
      ...base64,
      value.slice(0, 24),
    ]),
  ];
}

function around(text: string, spelling: string): string {
  const at = text.indexOf(spelling);
  return JSON.stringify(text.slice(Math.max(0, at - 120), at + spelling.length + 40));
}

function filesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => existsSync(path) && statSync(path).isFile());
}

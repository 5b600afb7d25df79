import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { ParleyError } from '#contracts/errors.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { bytesOf } from '../../src/config/units.ts';
import { findLinkedWorkspaceProblems, workspacesOutside } from '../../src/config/workspace-rules.ts';
import type { DiskCalls } from '../../src/contracts/workspace-reader.ts';
import { aFolder } from '../support/own-folder.ts';

const telegramToken = '123456789:AAF0123456789abcdefghijklmnopqrs-_x';

let folder: string;
beforeEach(() => {
  folder = aFolder();
});

function load(file: unknown, variables: Record<string, string> = {}) {
  if (file !== undefined) {
    const text = typeof file === 'string' ? file : JSON.stringify(file);
    writeFileSync(join(folder, 'parley.config.json'), text);
  }
  return loadConfig(readEnvironment(variables), folder);
}

function problemsOf(file: unknown, variables: Record<string, string> = {}): string {
  try {
    load(file, variables);
  } catch (error) {
    expect(error).toBeInstanceOf(ParleyError);
    expect((error as ParleyError).code).toBe('config_invalid');
    return (error as ParleyError).message;
  }
  throw new Error('the configuration was accepted');
}

const ollama = { provider: 'ollama', id: 'qwen3' };

describe('neither file nor environment', () => {
  it('starts the demo model on loopback with the default settings', () => {
    expect(load(undefined)).toMatchObject({
      dataDir: join(folder, 'data'),
      host: '127.0.0.1',
      port: 7411,
      role: 'all',
      dmScope: 'per-account-channel-peer',
      joinMs: 1500,
      shutdownMs: 15_000,
      model: 'demo',
      agents: [{ id: 'main', workspace: join(folder, 'data', 'workspace') }],
      defaultAgent: 'main',
      identityLinks: { owner: ['web:owner', 'terminal:owner'] },
      owners: ['web:owner', 'terminal:owner'],
      access: { dmPolicy: 'pairing', groupPolicy: 'allowlist', allowFrom: [], allowGroups: [] },
      groups: { requireMention: true, contextLimit: 50 },
      queue: {
        dm: { mode: 'steer', debounceMs: 0, quietMs: 1000, cap: 20, drop: 'summarize' },
        group: { mode: 'collect', debounceMs: 0, quietMs: 1000, cap: 20, drop: 'summarize' },
        waitingNotice: { kind: 'reaction', afterMs: 2000, emoji: '👀', channels: {} },
      },
      run: { timeoutMs: 600_000, modelIdleMs: 120_000, turns: 50, repeatedCalls: 3, maxAttempts: 3 },
      lanes: {
        leaseMs: 10_000,
        renewMs: 2000,
        concurrency: { main: 64, 'sub-5': 8, schedule: 4, background: 2 },
        maxRunsPerClaim: 5,
      },
      outbox: {
        retries: 3,
        minBackoffMs: 500,
        maxBackoffMs: 30_000,
        sendTimeoutMs: 30_000,
        resendUnknown: false,
      },
      channels: {
        telegram: { enabled: false },
        discord: { enabled: false },
        signal: { enabled: false },
        web: { enabled: true },
        terminal: { enabled: true },
      },
    });
  });

  it('admits no strangers by default', () => {
    const { access } = load(undefined);
    expect([access.dmPolicy, access.groupPolicy]).not.toContain('open');
  });
});

describe('the environment', () => {
  it('prefers the environment over the file', () => {
    const config = load(
      { port: 1, logLevel: 'warn', model: 'claude-of-the-file', access: { dmPolicy: 'disabled' } },
      {
        PARLEY_PORT: '7500',
        PARLEY_LOG_LEVEL: 'debug',
        PARLEY_MODEL: 'anthropic/from-environment',
        PARLEY_DM_POLICY: 'open',
        ANTHROPIC_API_KEY: 'sk-ant-0000001',
      },
    );
    expect(config).toMatchObject({
      port: 7500,
      logLevel: 'debug',
      model: 'anthropic/from-environment',
      access: { dmPolicy: 'open' },
    });
  });

  it('reads several keys, the Telegram account and the owners from the environment', () => {
    const config = load(undefined, {
      ANTHROPIC_API_KEY: 'sk-ant-0000001, sk-ant-0000002',
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:9999',
      TELEGRAM_BOT_TOKEN: telegramToken,
      TELEGRAM_API_ROOT: 'http://127.0.0.1:9998',
      PARLEY_OWNERS: 'telegram:42, telegram:43',
    });
    const { anthropic } = config.providers;
    expect(anthropic?.apiKeys.map((key) => key.reveal())).toEqual(['sk-ant-0000001', 'sk-ant-0000002']);
    expect(anthropic?.baseUrl).toBe('http://127.0.0.1:9999');
    expect(config.channels.telegram).toMatchObject({ enabled: true, apiRoot: 'http://127.0.0.1:9998' });
    expect(config.channels.telegram.token?.reveal()).toBe(telegramToken);
    expect(config.owners).toEqual(['web:owner', 'terminal:owner', 'telegram:42', 'telegram:43']);
  });

  it.each([
    [{ OPENAI_API_KEY: 'sk-proj-0000001' }, 'openai/gpt-6-luna'],
    [{ OPENAI_BASE_URL: 'http://127.0.0.1:9' }, 'openai/gpt-6-luna'],
    [
      { OPENAI_API_KEY: 'sk-proj-0000001', ANTHROPIC_API_KEY: 'sk-ant-0000001' },
      'anthropic/claude-sonnet-5-5',
    ],
    [{ PARLEY_MODEL: 'ollama/qwen3' }, 'ollama/qwen3'],
  ])('chooses the default model from the environment: %j', (variables, model) => {
    expect(load(undefined, variables).model).toBe(model);
  });

  it("reads a provider's keys from the variable that it names", () => {
    const file = { providers: { house: { baseUrl: 'http://127.0.0.1:9', keysEnv: 'WORK_API_KEY' } } };
    const config = load(file, { WORK_API_KEY: 'sk-house-00001' });
    expect(config.providers.house?.apiKeys.map((key) => key.reveal())).toEqual(['sk-house-00001']);
  });

  it("turns Signal on by its server's address and keeps its webhook secret", () => {
    const secret = 'f3a81c0b9d4e27568c1d';
    const config = load(undefined, {
      SIGNAL_API_URL: 'http://127.0.0.1:8080',
      SIGNAL_NUMBER: '+15550001111',
      SIGNAL_WEBHOOK_SECRET: `${secret}-77`,
    });
    expect(config.channels.signal).toMatchObject({
      enabled: true,
      apiUrl: 'http://127.0.0.1:8080',
      number: '+15550001111',
    });
    expect(config.channels.signal.webhookSecret?.reveal()).toBe(`${secret}-77`);
    expect(JSON.stringify(config)).not.toContain(secret);
    expect(problemsOf({ channels: { signal: { enabled: true } } })).toContain("SIGNAL_API_URL isn't set");
    expect(problemsOf({ channels: { signal: { webhookSecret: secret } } })).toContain(
      'SIGNAL_WEBHOOK_SECRET',
    );
    expect(problemsOf(undefined, { SIGNAL_WEBHOOK_SECRET: 'changeme' })).toContain('SIGNAL_WEBHOOK_SECRET');
    expect(problemsOf(undefined, { SIGNAL_NUMBER: '0170 123' })).toContain('SIGNAL_NUMBER');
  });

  it("turns Discord on by its bot's token and keeps it", () => {
    const token = 'MTA0NzM0MTIzNDU2Nzg5MDEy.G4abcd.0123456789abcdefghijklmnopqrstuvwxyz';
    const variables = { DISCORD_BOT_TOKEN: token, DISCORD_API_BASE: 'http://127.0.0.1:9997/api' };
    const config = load(undefined, variables);
    expect(config.channels.discord).toMatchObject({ enabled: true, apiBase: 'http://127.0.0.1:9997/api' });
    expect(config.channels.discord.token?.reveal()).toBe(token);
    expect(JSON.stringify(config)).not.toContain(token);
    expect(problemsOf({ channels: { discord: { enabled: true } } })).toContain('set DISCORD_BOT_TOKEN');
    expect(problemsOf({ channels: { discord: { token } } })).toContain('DISCORD_BOT_TOKEN');
    expect(problemsOf(undefined, { DISCORD_BOT_TOKEN: 'changeme' })).toContain('Bot page');
  });

  it('treats an empty variable as absent', () => {
    expect(load(undefined, { PARLEY_TOKEN: '', PARLEY_PORT: '', ANTHROPIC_API_KEY: '' })).toMatchObject({
      port: 7411,
      model: 'demo',
    });
  });

  it('names the variable whose value is wrong', () => {
    const text = problemsOf(undefined, { PARLEY_PORT: 'http', PARLEY_DM_POLICY: 'opne' });
    expect(text).toContain(`PARLEY_PORT in the environment: "http" isn't a number; write a number`);
    expect(text).toContain(`PARLEY_DM_POLICY in the environment: "opne" isn't allowed`);
    expect(text).toContain('Did you mean "open"?');
  });

  it('reports a misspelled variable instead of ignoring it', () => {
    expect(problemsOf(undefined, { PARLEY_OWNER: 'telegram:1' })).toContain('Did you mean PARLEY_OWNERS?');
  });
  it('refuses a proxy that it would not use, unless a direct connection is allowed', () => {
    const proxy = { https_proxy: 'http://user:secret@proxy.example:3128' };
    expect(problemsOf(undefined, proxy)).toContain('https_proxy in the environment: names a proxy');
    expect(problemsOf(undefined, proxy)).not.toContain('secret');
    expect(() => problemsOf(undefined, { ...proxy, NO_PROXY: 'localhost' })).not.toThrow();
    expect(problemsOf(undefined, { ...proxy, PARLEY_OWNER: 'x', NO_PROXY: '*' })).not.toContain('proxy');
  });
});

describe('a broken configuration', () => {
  it('reports all problems together, each with path, problem and fix', () => {
    const text = problemsOf(
      { prot: 1, queue: { dm: { mode: 'steeer', cap: 0 } }, agents: [{ id: 'agent' }, { id: 'self' }] },
      { TELEGRAM_BOT_TOKEN: 'changeme' },
    );
    expect(text).toContain('6 problems');
    expect(text).toMatch(/"prot" isn't a known name\. Did you mean "port"\?/);
    expect(text).toMatch(/queue\.dm\.mode in .*"steeer" isn't allowed.*Did you mean "steer"\?/);
    expect(text).toMatch(/queue\.dm\.cap in .*0 is too small; use at least 1/);
    expect(text).toMatch(/agents\[0\]\.id in .*reserved/);
    expect(text).toMatch(/agents\[1\]\.id in .*reserved/);
    expect(text).toContain('TELEGRAM_BOT_TOKEN in the environment: is a placeholder');
  });

  it.each([
    ['an empty file', ' \n', /is empty; write \{\} in it, or remove it/],
    ['not JSON', '{ "port": 1,, }', /isn't valid JSON at line 1, column \d+/],
    ['not an object', '[]', /isn't a JSON object/],
    [
      'a duplicate setting',
      '{ "access": { "dmPolicy": "open" }, /* { */ "agents": [{ "id": "a" }, { "id": "b" }], "access": { } }',
      /has a problem:\n {2}- access in .*twice/,
    ],
    ['an empty policy', { access: { dmPolicy: '' } }, /access\.dmPolicy/],
    ['an unknown policy', { access: { groupPolicy: 'everyone' } }, /access\.groupPolicy.*use one of/],
    [
      'a name in place of an id',
      { access: { allowFrom: ['telegram:@john'] } },
      /is a name, and names can change hands/,
    ],
    ['a wildcard', { access: { allowFrom: ['telegram:*'] } }, /wildcard.*"open"/],
    ['an owner without a channel', { owners: ['42'] }, /owners\[0\].*channel:id/],
    ['an owner with white space in it', { owners: ['telegram: 42'] }, /owners\[0\].*channel:id/],
    [
      'a pattern that could backtrack',
      { groups: { mentionPatterns: ['(a)\\1'] } },
      /mentionPatterns\[0\].*isn't valid/,
    ],
    [
      'patterns that take long together',
      { groups: { mentionPatterns: Array.from({ length: 9 }, (_, index) => `(?:[a-z]+,){40}${index}`) } },
      /mentionPatterns.*too large in total/,
    ],
    ['a pattern that matches everything', { groups: { mentionPatterns: ['x*'] } }, /match everything/],
    ['a lease that a late renewal loses', { lanes: { leaseMs: 1000, renewMs: 900 } }, /lanes\.renewMs.*half/],
    [
      'one conversation for all strangers',
      { dmScope: 'main', access: { dmPolicy: 'open' } },
      /dmScope.*access\.dmPolicy "open" lets strangers write/,
    ],
    ['two agents of one id', { agents: [{ id: 'a' }, { id: 'a' }] }, /agents\[1\]\.id.*used twice/],
    [
      'a default agent that is none',
      { defaultAgent: 'x' },
      /defaultAgent.*isn't a known agent; use one of: main/,
    ],
    [
      'a binding to no agent',
      { bindings: [{ agent: 'x', channel: 'web' }] },
      /bindings\[0\]\.agent.*isn't a known agent/,
    ],
    ['a binding of everything', { bindings: [{ agent: 'main' }] }, /bindings\[0\].*matches everything/],
    [
      'one peer, two people',
      { identityLinks: { a: ['web:1'], b: ['web:1'] } },
      /identityLinks\.b.*belongs to "a"/,
    ],
    [
      "an identity that may be somebody's id",
      { dmScope: 'per-peer', identityLinks: { 4711: ['web:1'] } },
      /identityLinks\.4711.*someone else's id/,
    ],
    ['a model without its key', { model: 'claude-opus-5' }, /model: .*ANTHROPIC_API_KEY/],
    ['a provider that nobody knows', { model: 'olama/qwen3' }, /"olama".*Did you mean "ollama"/],
    ['an alias that is misspelt', { model: 'fsat', models: { fast: ollama } }, /Did you mean "fast"/],
    [
      "an agent's model",
      { agents: [{ id: 'main', model: 'nothing' }] },
      /agents\[0\]\.model.*provider\/model/,
    ],
    ['a fallback', { models: { a: { ...ollama, fallbacks: ['b'] } } }, /models\.a\.fallbacks\[0\]/],
    ['a channel without its token', { channels: { telegram: { enabled: true } } }, /TELEGRAM_BOT_TOKEN/],
    ['an unknown channel', { channels: { telegramm: {} } }, /Did you mean "telegram"\?/],
    ['a token at the top level', { token: 'x' }, /set PARLEY_TOKEN in the environment/],
    ['an unknown time zone', { timeZone: 'Berlin' }, /timeZone.*IANA/],
    ['back-offs the wrong way round', { outbox: { minBackoffMs: 9, maxBackoffMs: 5 } }, /minBackoffMs.*swap/],
    ['a back-off that nothing grows from', { outbox: { minBackoffMs: 0 } }, /minBackoffMs.*use at least 1/],
    [
      'a back-off that the store takes for a wrong clock',
      { outbox: { maxBackoffMs: 300_001 } },
      /maxBackoffMs.*use at most 300000/,
    ],
    ['a run without time', { run: { timeoutMs: 0 } }, /run\.timeoutMs.*use at least 1000/],
    ['a silence that its server ends', { run: { modelIdleMs: 600_001 } }, /modelIdleMs.*use at most 600000/],
    [
      'an answer that leaves the prompt no room',
      { models: { a: { ...ollama, window: 8192, maxTokens: 8192 } } },
      /models\.a\.maxTokens.*window of 8192/,
    ],
    [
      'an id with its channel where it stands alone',
      { bindings: [{ agent: 'main', peer: 'telegram:42' }] },
      /bindings\[0\]\.peer.*"channel": "telegram", "peer": "42"/,
    ],
    [
      'a binding to no account',
      {
        channels: { telegram: { accounts: { work: {} } } },
        bindings: [
          { agent: 'main', account: '7000001' },
          { agent: 'main', account: 'wrok' },
        ],
      },
      /has a problem:\n.*bindings\[1\]\.account: "wrok" isn't a name under accounts\. Did you mean "work"\?/,
    ],
    [
      'an address in place of a host',
      { allowedHosts: ['parley.home:8443', 'https://parley.home'] },
      /allowedHosts\[1\].*isn't a host/,
    ],
    [
      "a folder of Parley's own",
      { agents: [{ id: 'main', workspace: 'media/mine' }] },
      /agents\[0\]\.workspace: is in .*media, which is Parley's own/,
    ],
  ])('refuses %s', (_name, file, expected) => {
    expect(problemsOf(file)).toMatch(expected);
  });

  it('never shows a secret that it refuses', () => {
    const secret = 'canary-5f2a';
    const text = [
      problemsOf({ channels: { telegram: { token: secret } } }),
      problemsOf(`{ "token": "${secret}" x`),
      problemsOf({ token: secret, redisUrl: secret }),
      problemsOf({ providers: { own: { keysEnv: secret, headersEnv: `authorization=${secret}` } } }),
      problemsOf({ channels: { telegram: { accounts: { work: { tokenEnv: secret } } } } }),
      problemsOf(undefined, { TELEGRAM_BOT_TOKEN: secret, PARLEY_TOKEN: secret, DATABASE_URL: secret }),
      problemsOf(undefined, { REDIS_URL: `http://:${secret}@127.0.0.1` }),
    ].join('\n');
    expect(text).not.toContain(secret);
    expect(text).toContain('set TELEGRAM_BOT_TOKEN in the environment and remove it here');
  });

  it('refuses a named file that does not exist and reads one that does', () => {
    expect(problemsOf(undefined, { PARLEY_CONFIG: 'other.json' })).toMatch(/other\.json: doesn't exist/);
    writeFileSync(join(folder, 'other.json'), '{ "port": 9, "dataDir": "state" }');
    expect(load(undefined, { PARLEY_CONFIG: 'other.json' })).toMatchObject({
      port: 9,
      dataDir: join(folder, 'state'),
    });
  });
});

describe('the address of Redis (threat 14)', () => {
  const isOpen = 'points to another machine without a password';
  const isOther = "isn't a Redis address";

  it.each([
    ['redis://redis.example:6379', isOpen],
    ['redis://redis.example', isOpen],
    ['redis://10.0.0.7', isOpen],
    ['rediss://10.0.0.7', isOpen],
    ['redis://0.0.0.0', isOpen],
    ['redis://127.0.0.1.example.com', isOpen],
    ['redis://127.0.0.1.example.com:6379', isOpen],
    ['redis://:changeme@redis', 'contains a password that is a placeholder'],
    ['redis://:changeme@10.255.255.1', 'contains a password that is a placeholder'],
    ['http://127.0.0.1:6379', isOther],
    ['localhost:6379', isOther],
  ])('refuses the Redis address %s', (REDIS_URL, reason) => {
    const problem = problemsOf(undefined, { REDIS_URL });
    expect(problem).toContain('REDIS_URL in the environment');
    expect(problem).toContain(reason);
  });

  it.each([
    'redis://127.0.0.1:6379',
    'redis://localhost',
    'redis://[::1]:6379/2',
    'redis://:s3cr3t-p4ss@redis:6379',
    'rediss://user:s3cr3t-p4ss@redis.example',
    '/run/redis.sock',
  ])('accepts the Redis address %s', (REDIS_URL) => {
    expect(load(undefined, { REDIS_URL }).redisUrl?.reveal()).toBe(REDIS_URL);
  });

  it('accepts a remote Redis without a password only if told so', () => {
    const REDIS_URL = 'redis://10.0.0.7';
    expect(load({ allowInsecureRedis: true }, { REDIS_URL }).redisUrl?.reveal()).toBe(REDIS_URL);
  });
});

describe('the configuration', () => {
  it('freezes the loaded configuration', () => {
    const config = load({ channels: { telegram: { extra: { deep: [1] } } } });
    const visit = (value: unknown) => {
      if (typeof value !== 'object' || value === null) return;
      expect(Object.isFrozen(value)).toBe(true);
      Object.values(value).forEach(visit);
    };
    visit(config);
  });

  it("keeps a channel's own settings for that channel", () => {
    expect(load({ channels: { telegram: { pollSeconds: 5 } } }).channels.telegram.pollSeconds).toBe(5);
  });

  it('treats a group with its own settings as allowed', () => {
    const config = load({ access: { allowGroups: ['telegram:-1'], groups: { 'telegram:-2': {} } } });
    expect(config.access.allowGroups).toEqual(['telegram:-1', 'telegram:-2']);
  });

  it('links page and terminal as one person by default', () => {
    expect(load({ identityLinks: { ann: ['web:owner', 'telegram:5'] } }).identityLinks).toEqual({
      owner: ['terminal:owner'],
      ann: ['web:owner', 'telegram:5'],
    });
    // Other accounts of the same identity don't displace them.
    expect(load({ identityLinks: { owner: ['telegram:5'] } }).identityLinks).toEqual({
      owner: ['telegram:5', 'web:owner', 'terminal:owner'],
    });
  });

  it('gives each further agent its own workspace', () => {
    const [first, second] = load({ agents: [{ id: 'main' }, { id: 'help' }] }).agents;
    expect(first?.workspace).not.toBe(second?.workspace);
  });

  it.each(['.', '..', '/', 'workspace/../../data'])(
    'refuses the workspace %j, which contains its own data',
    (workspace) => {
      expect(problemsOf({ agents: [{ id: 'main', workspace }] })).toMatch(
        /agents\[0\]\.workspace: contains .*data, which the file tools would expose/,
      );
    },
  );

  it('refuses a workspace that contains the settings, even if the data folder is elsewhere', async () => {
    const elsewhere = { PARLEY_DATA_DIR: join(tmpdir(), 'parley-data-elsewhere') };
    const file = { agents: [{ id: 'main', workspace: folder }] };
    expect(problemsOf(file, elsewhere)).toContain(`contains ${join(folder, 'parley.config.json')}`);
    symlinkSync(folder, join(folder, 'link'));
    const linked = load({ agents: [{ id: 'main', workspace: join(folder, 'link') }] }, elsewhere);
    const asked: string[] = [];
    const disks: DiskCalls = {
      run: (disk, call) => {
        asked.push(disk);
        return call();
      },
      finish: (_, call) => call(),
    };
    const what = expect.stringContaining('parley.config.json, which the file tools would expose');
    const problem = { where: 'agents[0].workspace', what };
    expect(await findLinkedWorkspaceProblems(linked, disks)).toEqual([problem]);
    // The process never blocks on a disk itself: reading the settings touches none, and links are followed through
    // `disks`.
    expect(asked).toContain(join(folder, 'link'));
    const gone: DiskCalls = { ...disks, run: () => Promise.reject(new Error('no answer')) };
    expect(await findLinkedWorkspaceProblems(linked, gone)).toEqual([]);
    const written = { ...linked, agents: linked.agents.map((agent) => ({ ...agent, workspace: folder })) };
    expect(await findLinkedWorkspaceProblems(written, gone)).toEqual([problem]);
    const inside = { agents: [{ id: 'main', workspace: join(folder, 'project') }] };
    expect(load(inside, elsewhere).agents[0]?.workspace).toBe(join(folder, 'project'));
    expect(load({ agents: [{ id: 'main', workspace: '../data-of-mine' }] }).agents).toHaveLength(1);
  });

  it('lets an agent start only itself as a sub-agent by default, within limits', () => {
    const agents = [
      { id: 'main' },
      { id: 'chief', subagents: { allowAgents: ['main', '*'] }, tools: { deny: ['write'] } },
    ];
    expect(load({ agents })).toMatchObject({
      agents: [{ tools: { deny: [] }, subagents: {} }, { tools: { deny: ['write'] } }],
      subagents: {
        maxSpawnDepth: 1,
        maxChildrenPerAgent: 5,
        tree: { nodes: 20, lifetime: 200, graphNodes: 200, seconds: 3600 },
      },
    });
    expect(load({ agents }).agents[0]?.subagents.allowAgents).toBeUndefined();
    expect(problemsOf({ agents: [{ id: 'main', subagents: { allowAgents: ['cook'] } }] })).toContain(
      `"cook" isn't a known agent`,
    );
    expect(problemsOf({ subagents: { maxSpawnDepth: 6 } })).toContain('subagents.maxSpawnDepth');
  });

  it('takes what an agent is good at in a few words, and no essay', () => {
    const of = (words: object) => ({ agents: [{ id: 'main', ...words }] });
    const words = { specialty: ' Reads contracts. ', capabilities: ['find deadlines', 'compare versions'] };
    expect(load(of(words)).agents).toMatchObject([{ ...words, specialty: 'Reads contracts.' }]);
    expect(problemsOf(of({ specialty: 'x'.repeat(201) }))).toContain('agents[0].specialty');
    expect(problemsOf(of({ specialty: ' ' }))).toContain('agents[0].specialty');
    expect(problemsOf(of({ capabilities: ['x'.repeat(61)] }))).toContain('agents[0].capabilities[0]');
    expect(problemsOf(of({ capabilities: Array(21).fill('read') }))).toContain('agents[0].capabilities');
    expect(problemsOf({ subagents: { tree: { graphNodes: 1001 } } })).toContain('subagents.tree.graphNodes');
  });

  it('turns dollars into micro-dollars', () => {
    const prices = { input: 3, output: 15, cacheWrite: 3.75, cacheRead: 0.3 };
    expect(load({ models: { fast: { ...ollama, prices } } }).models.fast?.prices).toEqual({
      input: 3_000_000,
      output: 15_000_000,
      cacheWrite: 3_750_000,
      cacheRead: 300_000,
    });
  });

  it('matches mention patterns in linear time, whatever the pattern (threat 13)', () => {
    const [matcher, named] = load({
      groups: { mentionPatterns: ['(a+)+$', '\\bparley\\b'] },
    }).mentionMatchers;
    // A backtracking matcher would practically never finish this.
    expect(matcher?.find(`${'a'.repeat(4000)}!`)).toBeUndefined();
    expect(named?.find('Hello Parley!')).toEqual({ start: 6, end: 12 });
  });

  it('accepts trace headers percent-encoded or literal', () => {
    const variables = { OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20YTpi, x-share=50%' };
    const { headers } = load({ tracing: { endpoint: 'http://127.0.0.1:9' } }, variables).tracing;
    expect(headers.authorization?.reveal()).toBe('Basic YTpi');
    expect(headers['x-share']?.reveal()).toBe('50%');
  });

  it('turns any number of megabytes into whole bytes', () => {
    const sizes = Array.from({ length: 20_000 }, (_, index) => bytesOf((index + 1) / 10));
    expect(sizes.filter((bytes, index) => bytes !== (index + 1) * 100_000)).toEqual([]);
  });

  it('accepts a workspace beside the data folder, but not one that contains a .env file', () => {
    const file = { agents: [{ id: 'main', workspace: '../files' }] };
    const config = load(file);
    expect(config.agents[0]?.workspace).toBe(join(folder, 'files'));
    expect(workspacesOutside(config, [config.dataDir])).toEqual([join(folder, 'files')]);
    expect(workspacesOutside(config, [folder])).toEqual([]);
    const env = { path: join(folder, 'files', '.env'), names: [], hidden: [] };
    expect(() => loadConfig({ ...readEnvironment({}), files: [env] }, folder)).toThrow(/contains .*\.env/);
  });
});

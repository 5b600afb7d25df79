import { decode } from './decode.ts';
import type { Environment, EnvironmentName } from './environment.ts';
import { findKeyProblems } from './model-settings.ts';
import type { Problem } from './problem.ts';
import { findSecretProblem, Secret, type SecretKind } from './secret.ts';

/** A network whose accounts have secrets. */
export type Network = {
  readonly variable: EnvironmentName;
  /** The channel's setting that takes the secret. */
  readonly setting: string;
  readonly kind: SecretKind;
  readonly fix: string;
  /** Without the secret, there is no account. */
  readonly isRequired: boolean;
  /** The variable that turns an account on, if it isn't the secret's. */
  readonly switchedBy?: string;
  /** Settings that belong to a single account and are never inherited. */
  readonly own: readonly string[];
};

/** The networks with secrets, and how to read each secret. */
export const accountNetworks = {
  telegram: {
    variable: 'TELEGRAM_BOT_TOKEN',
    setting: 'token',
    kind: 'telegram-token',
    fix: 'copy it from @BotFather or unset it',
    isRequired: true,
    own: [],
  },
  discord: {
    variable: 'DISCORD_BOT_TOKEN',
    setting: 'token',
    kind: 'discord-token',
    fix: 'copy it from the Bot page of the developer portal or unset it',
    isRequired: true,
    own: [],
  },
  signal: {
    variable: 'SIGNAL_WEBHOOK_SECRET',
    setting: 'webhookSecret',
    kind: 'access-token',
    fix: 'use a random one, for example from `openssl rand -hex 24`',
    isRequired: false,
    switchedBy: 'SIGNAL_API_URL',
    own: ['number', 'aci'],
  },
} as const satisfies Record<string, Network>;

export type NetworkName = keyof typeof accountNetworks;
export type Credentials = ReturnType<typeof readCredentials>;

export type CredentialRules = { readonly allowInsecureRedis: boolean };

/** Reads every secret from the environment and reports those that can't be real. */
export function readCredentials(environment: Environment, rules: CredentialRules) {
  const problems: Problem[] = [];
  const take = (name: EnvironmentName, find: (value: string) => string | undefined): Secret | undefined => {
    const value = environment.values[name];
    if (value === undefined) return undefined;
    const problem = find(value);
    if (problem !== undefined) problems.push({ where: `${name} in the environment`, what: problem });
    return new Secret(value);
  };
  const ofKind = (kind: SecretKind, fix: string) => (value: string) => {
    const problem = findSecretProblem(value, kind);
    return problem === undefined ? undefined : `${problem}; ${fix}`;
  };
  const ofNetwork = (name: NetworkName) => {
    const { variable, kind, fix } = accountNetworks[name];
    return take(variable, ofKind(kind, fix));
  };
  const secrets = {
    token: take(
      'PARLEY_TOKEN',
      ofKind('access-token', 'use a random one, or unset it and Parley creates one'),
    ),
    telegramToken: ofNetwork('telegram'),
    discordToken: ofNetwork('discord'),
    signalWebhookSecret: ofNetwork('signal'),
    redisUrl: take('REDIS_URL', (value) => findRedisProblem(value, rules)),
    databaseUrl: take('DATABASE_URL', findDatabaseProblem),
  };
  problems.push(
    ...findKeyProblems('ANTHROPIC_API_KEY', environment),
    ...findKeyProblems('OPENAI_API_KEY', environment),
  );
  return { ...secrets, problems };
}

export function splitList(text: string | undefined): readonly string[] {
  return (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/**
 * Checks the address. A remote Redis must require a password, because any client that reaches it can read and forge
 * wake jobs (threat 14).
 */
function findRedisProblem(value: string, rules: CredentialRules): string | undefined {
  if (value.startsWith('/')) return undefined;
  const url = parseUrl(value);
  if (url === undefined || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') {
    return "isn't a Redis address; use redis://host:6379, rediss://host:6379 or the path of a unix socket";
  }
  const password = decode(url.password);
  if (password !== '') return passwordProblem(password);
  if (isLoopback(url.hostname) || rules.allowInsecureRedis) return undefined;
  return `points to another machine without a password; use ${url.protocol}//:password@host:port, or set allowInsecureRedis to true if only Parley can reach it`;
}

function findDatabaseProblem(value: string): string | undefined {
  const url = parseUrl(value);
  if (url === undefined || !['postgres:', 'postgresql:'].includes(url.protocol)) {
    return "isn't a PostgreSQL address; use postgres://user:password@host:5432/database";
  }
  const password = decode(url.password);
  return password === '' ? undefined : passwordProblem(password);
}

function passwordProblem(password: string): string | undefined {
  const problem = findSecretProblem(password, 'password');
  return problem === undefined ? undefined : `contains a password that ${problem}; set a real one`;
}

function parseUrl(value: string): URL | undefined {
  return URL.canParse(value) ? new URL(value) : undefined;
}

/**
 * Says whether a URL's host is this machine. Accepts only unambiguous spellings, because URL doesn't normalize the hosts
 * of `redis://` addresses.
 */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

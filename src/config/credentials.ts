import { decode } from './decode.ts';
import type { Environment, EnvironmentName } from './environment.ts';
import { findKeyProblems } from './model-settings.ts';
import type { Problem } from './problem.ts';
import { findSecretProblem, Secret, type SecretKind } from './secret.ts';

export type Credentials = {
  readonly token?: Secret;
  readonly telegramToken?: Secret;
  readonly discordToken?: Secret;
  readonly signalWebhookSecret?: Secret;
  readonly redisUrl?: Secret;
  readonly databaseUrl?: Secret;
  readonly problems: readonly Problem[];
};

export type CredentialRules = { readonly allowInsecureRedis: boolean };

/** Takes every secret of the environment and refuses those that cannot be real. */
export function readCredentials(environment: Environment, rules: CredentialRules): Credentials {
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
  const token = take(
    'PARLEY_TOKEN',
    ofKind('access-token', 'use a random one, or unset it and Parley creates one'),
  );
  const telegramToken = take(
    'TELEGRAM_BOT_TOKEN',
    ofKind('telegram-token', 'copy it from @BotFather or unset it'),
  );
  const discordToken = take(
    'DISCORD_BOT_TOKEN',
    ofKind('discord-token', 'copy it from the Bot page of the developer portal or unset it'),
  );
  const signalWebhookSecret = take(
    'SIGNAL_WEBHOOK_SECRET',
    ofKind('access-token', 'use a random one, for example from `openssl rand -hex 24`'),
  );
  const redisUrl = take('REDIS_URL', (value) => findRedisProblem(value, rules));
  const databaseUrl = take('DATABASE_URL', findDatabaseProblem);
  problems.push(
    ...findKeyProblems('ANTHROPIC_API_KEY', environment),
    ...findKeyProblems('OPENAI_API_KEY', environment),
  );
  return {
    ...(token && { token }),
    ...(telegramToken && { telegramToken }),
    ...(discordToken && { discordToken }),
    ...(signalWebhookSecret && { signalWebhookSecret }),
    ...(redisUrl && { redisUrl }),
    ...(databaseUrl && { databaseUrl }),
    problems,
  };
}

export function splitList(text: string | undefined): readonly string[] {
  return (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/**
 * A remote Redis must ask for a password: any client that reaches it can read and forge wake jobs (threat 14).
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
  return problem === undefined ? undefined : `holds a password that ${problem}; set a real one`;
}

function parseUrl(value: string): URL | undefined {
  return URL.canParse(value) ? new URL(value) : undefined;
}

/** Only spellings that cannot mean anything else; `redis://` hosts are not normalised by URL. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

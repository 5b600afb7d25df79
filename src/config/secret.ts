import { inspect } from 'node:util';

/**
 * A credential that never prints: string conversion, JSON and `console.log` all yield `[secret]`. Only
 * `reveal()` returns the value, so every use can be found by searching for that name.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Returns the value, for the one call that needs it. Never log it, store it or put it in an error. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.toPrimitive](): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}

/** Returns the values of secrets that are sent together; the same rules apply as to `Secret.reveal`. */
export function revealAll(secrets: Readonly<Record<string, Secret>>): Record<string, string> {
  return Object.fromEntries(Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()]));
}

export type SecretKind =
  | 'telegram-token'
  | 'discord-token'
  | 'api-key'
  | 'server-key'
  | 'access-token'
  | 'password';

/** Says why a credential can't be used, without quoting any of it; undefined if it can. */
export function findSecretProblem(value: string, kind: SecretKind): string | undefined {
  if (value.trim() === '') return 'is empty';
  if (value !== value.trim()) return 'has whitespace around it';
  if (isPlaceholder(value)) return 'is a placeholder, not a credential';
  return kindProblems[kind](value);
}

/** Characters that no bearer token may contain. */
const unfitForHeader = /[^!-~]/;

const kindProblems: Record<SecretKind, (value: string) => string | undefined> = {
  // Telegram: "<bot id>:<35 characters>" (core.telegram.org/bots/api#authorizing-your-bot).
  'telegram-token': (value) =>
    /^\d+:[\w-]{30,}$/.test(value)
      ? undefined
      : "isn't a Telegram bot token (digits, a colon, then 30 or more letters, digits, _ or -)",
  // Discord: three base64url parts separated by dots, the first of which is the bot's id.
  'discord-token': (value) =>
    /^[\w-]{10,}\.[\w-]{4,}\.[\w-]{20,}$/.test(value)
      ? undefined
      : "isn't a Discord bot token (three parts of letters, digits, _ or -, separated by dots)",
  'api-key': (value) => (value.length < 8 ? 'is shorter than 8 characters' : findKeyFault(value)),
  // People choose the keys of their own servers, such as `ollama`.
  'server-key': (value) => findKeyFault(value),
  // 22 base64url characters carry 128 bits.
  'access-token': (value) => {
    if (value.length < 22) return 'is shorter than 22 characters (128 bits)';
    if (unfitForHeader.test(value)) return 'contains whitespace or characters other than ASCII';
    return new Set(value).size < 10 ? 'has too few different characters to be random' : undefined;
  },
  password: () => undefined,
};

function findKeyFault(value: string): string | undefined {
  // Docker's env files keep quotes as a part of the value.
  if (/^(["'`]).*\1$/.test(value)) return 'has quotes around it, which are sent as a part of it';
  return unfitForHeader.test(value)
    ? 'contains whitespace or other characters that no key has (commas separate keys)'
    : undefined;
}

const placeholders = new Set([
  'undefined',
  'null',
  'none',
  'nan',
  '[object object]',
  '[secret]',
  'changeme',
  'replaceme',
  'password',
  'secret',
  'token',
  'yourtoken',
  'yourtokenhere',
  'yourapikey',
  'yourapikeyhere',
  'yourpassword',
  'yourpasswordhere',
  'todo',
]);

function isPlaceholder(value: string): boolean {
  const lower = value.toLowerCase();
  return (
    placeholders.has(lower) ||
    placeholders.has(lower.replace(/[-_. ]/g, '')) ||
    /^[x.*_-]+$/.test(lower) ||
    /^<.*>$/.test(value) ||
    /\$\{.*\}/.test(value) ||
    /^your[-_]/.test(lower)
  );
}

/** Returns a copy of one level of settings with secrets as plain text, for the part that these settings belong to. */
export function revealSettings(settings: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, value instanceof Secret ? value.reveal() : value]),
  );
}

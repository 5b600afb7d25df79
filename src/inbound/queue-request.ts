import {
  type DropPolicy,
  dropPolicies,
  type QueueMode,
  type QueueSettings,
  queueModes,
} from '#contracts/queue-settings.ts';
import { parseDuration } from './duration.ts';

/** What `/queue …` asks for. */
export type QueueRequest =
  | { readonly kind: 'show' }
  | { readonly kind: 'reset' }
  /** Only what was named; never empty. */
  | { readonly kind: 'set'; readonly changes: Partial<QueueSettings> }
  | ItemRequest;

/** What is to be done with the messages that wait, or with the one that the list shows as `#17`. */
export type ItemRequest =
  | { readonly kind: 'list' }
  | { readonly kind: 'cancel-all' }
  | { readonly kind: 'cancel' | 'promote'; readonly number: number }
  | { readonly kind: 'edit'; readonly number: number; readonly text: string };

export function isItemRequest(request: QueueRequest): request is ItemRequest {
  return request.kind !== 'show' && request.kind !== 'reset' && request.kind !== 'set';
}

export type QueueParse =
  | { readonly kind: 'request'; readonly request: QueueRequest }
  /** For the person: what is wrong and what would be right. */
  | { readonly kind: 'problem'; readonly problem: string };

/** Longest debounce or quiet window from chat: a longer one looks like a bot that has died. */
const maxWaitMs = 600_000;
const maxCap = 1000;

/**
 * Parses what follows `/queue`: `[mode] [debounce:2s] [quiet:1s] [cap:25] [drop:summarize]`, `reset`, `list`,
 * `cancel 17`, `cancel all`, `promote 17`, or `edit 17 the new words`. The number may be written `#17`.
 */
export function parseQueueRequest(text: string): QueueParse {
  const [, verb = '', rest = ''] = /^(list|cancel|promote|edit)\b\s*([\s\S]*)$/i.exec(text.trim()) ?? [];
  if (verb !== '') return parseItemRequest(verb.toLowerCase(), rest.trim());
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return { kind: 'request', request: { kind: 'show' } };
  if (words.length === 1 && words[0] === 'reset') return { kind: 'request', request: { kind: 'reset' } };
  const changes: Writable<Partial<QueueSettings>> = {};
  for (const word of words) {
    const setting = parseSetting(word);
    if (typeof setting === 'string') return { kind: 'problem', problem: setting };
    const repeated = Object.keys(setting).find((name) => name in changes);
    if (repeated !== undefined) {
      return { kind: 'problem', problem: `"${word}" sets what was set before; keep one of them.` };
    }
    Object.assign(changes, setting);
  }
  return { kind: 'request', request: { kind: 'set', changes } };
}

function parseItemRequest(verb: string, rest: string): QueueParse {
  const [, digits = '', words = ''] = /^#?(\d{1,15})(?:\s+([\s\S]+))?$/.exec(rest) ?? [];
  const request = itemRequest(verb, { rest, digits, words });
  return typeof request === 'string' ? { kind: 'problem', problem: request } : { kind: 'request', request };
}

type Said = { readonly rest: string; readonly digits: string; readonly words: string };

/** The request, or the problem as a sentence. */
function itemRequest(verb: string, { rest, digits, words }: Said): ItemRequest | string {
  const number = Number(digits);
  switch (verb) {
    case 'list':
      return rest === '' ? { kind: 'list' } : 'Use /queue list on its own.';
    case 'cancel':
      if (rest.toLowerCase() === 'all') return { kind: 'cancel-all' };
      if (digits !== '' && words === '') return { kind: 'cancel', number };
      return 'Use /queue cancel and the number that /queue list shows, or /queue cancel all.';
    case 'promote':
      if (digits !== '' && words === '') return { kind: 'promote', number };
      return 'Use /queue promote and the number that /queue list shows.';
    default:
      if (digits !== '' && words !== '') return { kind: 'edit', number, text: words };
      return 'Use /queue edit, the number that /queue list shows, and the new words.';
  }
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** One setting, or the problem as a sentence. */
function parseSetting(word: string): Partial<QueueSettings> | string {
  const colon = word.indexOf(':');
  if (colon < 0) return parseMode(word);
  const value = word.slice(colon + 1);
  const name = word.slice(0, colon);
  switch (name) {
    case 'debounce':
    case 'quiet':
      return parseWait(name, value);
    case 'cap':
      return parseCap(value);
    case 'drop':
      return parseDrop(value);
    default:
      return `"${name}" is no queue setting; use debounce, quiet, cap or drop.`;
  }
}

function parseMode(word: string): Partial<QueueSettings> | string {
  const mode: QueueMode | undefined = queueModes.find((known) => known === word);
  return mode === undefined ? `"${word}" is no queue mode; use ${anyOf(queueModes)}, or reset.` : { mode };
}

function parseWait(name: 'debounce' | 'quiet', value: string): Partial<QueueSettings> | string {
  const ms = parseDuration(value);
  if (ms === undefined) return `${name} wants a time such as 500ms, 2s or 1m, not "${value}".`;
  if (ms > maxWaitMs) return `${name} can be 10m at most.`;
  return name === 'debounce' ? { debounceMs: ms } : { quietMs: ms };
}

function parseCap(value: string): Partial<QueueSettings> | string {
  const cap = /^\d{1,9}$/.test(value) ? Number(value) : 0;
  return cap < 1 || cap > maxCap ? `cap wants a whole number from 1 to ${maxCap}, not "${value}".` : { cap };
}

function parseDrop(value: string): Partial<QueueSettings> | string {
  const drop: DropPolicy | undefined = dropPolicies.find((known) => known === value);
  return drop === undefined ? `drop wants ${anyOf(dropPolicies)}, not "${value}".` : { drop };
}

function anyOf(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

import {
  type DropPolicy,
  dropPolicies,
  type QueueMode,
  type QueueSettings,
  queueModes,
} from '#contracts/queue-settings.ts';
import type { Problem } from './chat-command.ts';
import { parseDuration } from './duration.ts';

/** Parsed words of `/queue …`. */
export type QueueRequest =
  | { readonly kind: 'show' }
  | { readonly kind: 'reset' }
  /** Only the settings that were named; never empty. */
  | { readonly kind: 'set'; readonly changes: Partial<QueueSettings> }
  | ItemRequest;

/** An action on all waiting messages, or on the one listed as `#17`. */
export type ItemRequest =
  | { readonly kind: 'list' }
  | { readonly kind: 'cancel-all' }
  | { readonly kind: 'cancel' | 'promote'; readonly number: number }
  | { readonly kind: 'edit'; readonly number: number; readonly text: string };

export function isItemRequest(request: QueueRequest): request is ItemRequest {
  return request.kind !== 'show' && request.kind !== 'reset' && request.kind !== 'set';
}

/** Longest debounce or quiet window that chat may set: with a longer one the bot would seem dead. */
const maxWaitMs = 600_000;
const maxCap = 1000;

/**
 * Parses the words after `/queue`: `[mode] [debounce:2s] [quiet:1s] [cap:25] [drop:summarize]`, `reset`, `list`,
 * `cancel 17`, `cancel all`, `promote 17`, or `edit 17 the new words`. The number may be written `#17`.
 */
export function parseQueueRequest(text: string): QueueRequest | Problem {
  const [, verb = '', rest = ''] = /^(list|cancel|promote|edit)\b\s*([\s\S]*)$/i.exec(text.trim()) ?? [];
  if (verb !== '') return parseItemRequest(verb.toLowerCase(), rest.trim());
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return { kind: 'show' };
  if (words.length === 1 && words[0] === 'reset') return { kind: 'reset' };
  const changes: Writable<Partial<QueueSettings>> = {};
  for (const word of words) {
    const setting = parseSetting(word);
    if ('problem' in setting) return setting;
    const isRepeated = Object.keys(setting).some((name) => name in changes);
    if (isRepeated) return { problem: 'queueRepeated', values: { word } };
    Object.assign(changes, setting);
  }
  return { kind: 'set', changes };
}

function parseItemRequest(verb: string, rest: string): ItemRequest | Problem {
  const [, digits = '', text = ''] = /^#?(\d{1,15})(?:\s+([\s\S]+))?$/.exec(rest) ?? [];
  const number = Number(digits);
  switch (verb) {
    case 'list':
      return rest === '' ? { kind: 'list' } : { problem: 'commandAlone', values: { command: '/queue list' } };
    case 'cancel':
      if (rest.toLowerCase() === 'all') return { kind: 'cancel-all' };
      return digits !== '' && text === '' ? { kind: 'cancel', number } : { problem: 'queueCancelUsage' };
    case 'promote':
      return digits !== '' && text === '' ? { kind: 'promote', number } : { problem: 'queuePromoteUsage' };
    default:
      return digits !== '' && text !== '' ? { kind: 'edit', number, text } : { problem: 'queueEditUsage' };
  }
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

function parseSetting(word: string): Partial<QueueSettings> | Problem {
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
      return { problem: 'queueUnknownSetting', values: { name } };
  }
}

function parseMode(word: string): Partial<QueueSettings> | Problem {
  const mode: QueueMode | undefined = queueModes.find((known) => known === word);
  return mode === undefined
    ? { problem: 'queueUnknownMode', values: { word, modes: queueModes.join(', ') } }
    : { mode };
}

function parseWait(name: 'debounce' | 'quiet', value: string): Partial<QueueSettings> | Problem {
  const ms = parseDuration(value);
  if (ms === undefined) return { problem: 'queueBadTime', values: { name, value } };
  if (ms > maxWaitMs) return { problem: 'queueLongTime', values: { name } };
  return name === 'debounce' ? { debounceMs: ms } : { quietMs: ms };
}

function parseCap(value: string): Partial<QueueSettings> | Problem {
  const cap = /^\d{1,9}$/.test(value) ? Number(value) : 0;
  return cap < 1 || cap > maxCap ? { problem: 'queueBadCap', values: { max: maxCap, value } } : { cap };
}

function parseDrop(value: string): Partial<QueueSettings> | Problem {
  const drop: DropPolicy | undefined = dropPolicies.find((known) => known === value);
  return drop === undefined
    ? { problem: 'queueBadDrop', values: { policies: dropPolicies.join(', '), value } }
    : { drop };
}

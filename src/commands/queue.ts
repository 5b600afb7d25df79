/** Shows the lane's settings with their origin, and its waiting messages, and changes both. */
import type { Outcome } from '#contracts/outcome.ts';
import {
  type DropPolicy,
  dropPolicies,
  type QueueMode,
  type QueueSettings,
  queueModes,
} from '#contracts/queue-settings.ts';
import { durationText } from '../client/duration.js';
import { renderInbound } from '../replies/untrusted.ts';
import { platformRef } from '../sessions/identities.ts';
import type { CommandScene, StepTx, Store } from '../store/base/command.ts';
import { newRowId } from '../store/base/keys.ts';
import { cancel, cancelAll, edit, type NewWords, promote, readAuthor } from '../store/items/change-item.ts';
import type { Actor, ItemChangeResult } from '../store/items/item-change.ts';
import { readOpenItems } from '../store/items/waiting-items.ts';
import { readLaneStatus } from '../store/reads/read-sessions.ts';
import { readWaitingItems, type WaitingItem } from '../store/reads/read-waiting-items.ts';
import { changeSettings } from '../store/rows/lane.ts';
import { type ChatTexts, fillText, type TextKey } from '../texts/chat-texts.ts';
import { cleanLabel, stripControls } from '../texts/untrusted-text.ts';
import {
  adminsInGroups,
  type CommandCall,
  type CommandDeps,
  chatCommand,
  type Problem,
} from './chat-command.ts';
import { linkedAccounts } from './one-time-code.ts';

/** How many of the waiting messages `/queue list` shows. */
const shown = 20;

export const queue = chatCommand({
  name: 'queue',
  usage: '[list|cancel n|promote n|edit n text|reset|steer|collect|… debounce:2s quiet:1s cap:25 drop:old]',
  menu: 'queueMenu',
  isForAll: true,
  parse: parseQueueRequest,
  right: (asker, request) => {
    const right = adminsInGroups(asker);
    return right === 'denied' && request && isItemRequest(request) ? 'own' : right;
  },
  load,
  apply,
  say,
  isRefused: (facts) => facts.kind === 'changed' && facts.changed.kind === 'not-permitted',
});

type Source = { readonly level: 'session' | 'conversation' | 'channel' | 'global'; readonly names: string };

type QueueInput =
  | {
      readonly kind: 'show';
      readonly settings: QueueSettings;
      readonly sources: readonly Source[];
      readonly channel: string;
      readonly count: number;
    }
  | { readonly kind: 'list'; readonly count: number; readonly items: readonly ListedItem[] }
  | {
      readonly kind: 'set';
      readonly change: Partial<QueueSettings> | 'reset';
      readonly configured: QueueSettings;
    }
  | { readonly kind: 'cancel-all'; readonly actor: Actor }
  | { readonly kind: 'cancel' | 'promote'; readonly number: number; readonly actor: Actor }
  /** `words` is absent when no message has that number. */
  | { readonly kind: 'edit'; readonly number: number; readonly actor: Actor; readonly words?: NewWords };

async function load(deps: CommandDeps, call: CommandCall, request: QueueRequest): Promise<QueueInput> {
  switch (request.kind) {
    case 'show':
      return loadLane(deps, call);
    case 'list':
      return loadItems(deps, call);
    case 'reset':
      return { kind: 'set', change: 'reset', configured: call.lane.settings };
    case 'set':
      return { kind: 'set', change: request.changes, configured: call.lane.settings };
    case 'edit': {
      const { number, text } = request;
      const { timeZone } = deps.policy;
      const words = await wordsFor(deps.store, { laneKey: call.lane.key, number, text, timeZone });
      return { kind: 'edit', number, actor: actorOf(deps, call), ...(words && { words }) };
    }
    default:
      return { ...request, actor: actorOf(deps, call) };
  }
}

type NewText = {
  readonly laneKey: string;
  readonly number: number;
  readonly text: string;
  /** IANA name. */
  readonly timeZone: string;
};

/** Renders the new words with the name and rights of the message's sender; undefined without such a message. */
export async function wordsFor(
  store: Pick<Store, 'read'>,
  { laneKey, number, text, timeZone }: NewText,
): Promise<NewWords | undefined> {
  const author = await store.read(readAuthor, { laneKey, number });
  if (author === undefined) return undefined;
  const prompt = renderInbound({ text, sender: author, ...author, attachments: [], timeZone });
  return { text, prompt, newId: newRowId() };
}

/** A command has the rights of the account it came from, but messages belong to the person, whatever the account. */
function actorOf({ policy }: CommandDeps, call: CommandCall): Actor {
  const { chat, route, sender } = call.envelope;
  const ref = platformRef(route.channel, sender.id);
  const isGroup = chat.kind === 'group';
  const isOwner = call.authority === 'owner';
  return {
    ref,
    people: [ref, ...(linkedAccounts(policy, call)?.people ?? [])],
    ...(!isOwner && { mayRewordOwnOnly: true }),
    mayChangeAny: isOwner || (isGroup && sender.isAdmin === true),
    mayPromoteOwn: !isGroup,
    conversationKey: call.conversationKey,
  };
}

const names = { mode: 'mode', debounceMs: 'debounce', quietMs: 'quiet', cap: 'cap', drop: 'drop' } as const;
const settingNames = Object.keys(names) as readonly (keyof QueueSettings)[];

async function loadLane({ store }: CommandDeps, { lane, place, queueLevels }: CommandCall) {
  const status = await store.read(readLaneStatus, { laneKey: lane.key });
  const session = { level: 'session', names: status?.overrides ?? {} } as const;
  const levels = [session, ...queueLevels];
  const sources = levels.flatMap(({ level, names: named }, index): readonly Source[] => {
    const isFirst = (name: keyof QueueSettings) =>
      name in named && !levels.slice(0, index).some((before) => name in before.names);
    const own = settingNames.filter(isFirst).map((name) => names[name]);
    return own.length === 0 ? [] : [{ level, names: own.join(', ') }];
  });
  const settings = { ...lane.settings, ...session.names };
  const { channel } = place.route;
  return { kind: 'show', settings, sources, channel, count: status?.waiting ?? 0 } as const;
}

type ListedItem = Omit<WaitingItem, 'excerpt'> & { readonly excerpt: string | undefined };

/** Loads the waiting messages. Groups have read them all; in a shared direct lane people see only their own words. */
async function loadItems(deps: CommandDeps, call: CommandCall) {
  const items = await deps.store.read(readWaitingItems, { laneKey: call.lane.key });
  const actor = actorOf(deps, call);
  const isShown = ({ sender }: WaitingItem) =>
    call.envelope.chat.kind === 'group' || actor.mayChangeAny || actor.people.includes(sender);
  const listed = items
    .slice(0, shown)
    .map((item): ListedItem => ({ ...item, excerpt: isShown(item) ? item.excerpt : undefined }));
  return { kind: 'list', count: items.length, items: listed } as const;
}

async function apply(tx: StepTx, scene: CommandScene, input: QueueInput) {
  if (input.kind === 'show' || input.kind === 'list') return input;
  const lane = await scene.lane();
  if (input.kind === 'set') return { ...input, settings: await changeSettings(tx, lane, input) };
  const { effects } = scene;
  if (input.kind === 'cancel-all') {
    const count = await cancelAll(tx, lane, { actor: input.actor, effects });
    const isOthersLeft = (await readOpenItems(tx, lane.key)).length > 0;
    return { kind: 'cancelled-all', count, isOthersLeft } as const;
  }
  const { kind: verb, number, actor } = input;
  const asked = { number, actor, effects };
  const changed = async (): Promise<ItemChangeResult> => {
    if (input.kind !== 'edit') return (verb === 'cancel' ? cancel : promote)(tx, lane, asked);
    return input.words ? edit(tx, lane, { ...asked, ...input.words }) : { kind: 'unknown' };
  };
  return { kind: 'changed', verb, number, changed: await changed() } as const;
}

function say(facts: Awaited<ReturnType<typeof apply>>, texts: ChatTexts): string {
  switch (facts.kind) {
    case 'show':
      return [
        queueLine(facts.settings, texts),
        facts.sources
          .map((source) => fillText(texts[sourceTexts[source.level]], { ...facts, ...source }))
          .join(' '),
        facts.count === 0 ? texts.itemsNone : fillText(texts.itemsWaiting, facts),
      ].join('\n');
    case 'list':
      return sayItems(facts, texts);
    case 'set': {
      const line = queueLine(facts.settings, texts);
      return facts.change === 'reset' ? `${texts.queueReset} ${line}` : line;
    }
    case 'cancelled-all': {
      const { count, isOthersLeft } = facts;
      if (count === 0) return isOthersLeft ? texts.itemsNoneOwn : texts.itemsNone;
      return fillText(isOthersLeft ? texts.itemsCancelledOwn : texts.itemsCancelled, { count });
    }
    case 'changed':
      return describeItemChange(facts, texts);
    default:
      return facts satisfies never;
  }
}

const sourceTexts = {
  session: 'queueNamedHere',
  conversation: 'queueOfConversation',
  channel: 'queueOfChannel',
  global: 'queueOfAll',
} as const;

/** Returns the settings on one line, as `/status` shows them too. */
export function queueLine(settings: QueueSettings, texts: ChatTexts): string {
  const { mode, debounceMs: debounce, quietMs: quiet, cap, drop } = settings;
  return fillText(texts.queueSettings, { mode, debounce, quiet, cap, drop });
}

type Verb = 'cancel' | 'promote' | 'edit';
type ChangedFacts = { readonly verb: Verb; readonly number: number; readonly changed: ItemChangeResult };

const doneTexts = { cancel: 'itemCancelled', promote: 'itemPromoted', edit: 'itemEdited' } as const;
const whoMay = { cancel: 'whoCancels', promote: 'whoPromotes', edit: 'whoEdits' } as const;

/** Describes the result of changing a waiting message in one sentence. */
export function describeItemChange({ verb, number, changed }: ChangedFacts, texts: ChatTexts): string {
  if (changed.kind === 'not-permitted') return fillText(texts.notPermitted, { who: texts[whoMay[verb]] });
  const values = changed.kind === 'ended' ? { outcome: outcomeText(changed.outcome, texts) } : changed;
  return fillText(texts[changedText(verb, changed)], { ...values, number });
}

const outcomeTexts = {
  answered: 'outcomeAnswered',
  silent: 'outcomeSilent',
  merged: 'outcomeMerged',
  cancelled: 'outcomeCancelled',
  refused: 'outcomeRefused',
  failed: 'outcomeFailed',
} as const satisfies Record<Outcome, TextKey>;

function outcomeText(outcome: string, texts: ChatTexts): string {
  const key: TextKey | undefined = new Map(Object.entries(outcomeTexts)).get(outcome);
  return key === undefined ? outcome : texts[key];
}

function changedText(verb: Verb, { kind }: ItemChangeResult): TextKey {
  switch (kind) {
    case 'done':
      return doneTexts[verb];
    case 'steered':
      return 'itemCorrected';
    case 'working':
      return verb === 'cancel' ? 'itemWorking' : 'itemTaken';
    case 'ended':
      return 'itemEnded';
    case 'kept':
      return 'itemKept';
    case 'behind':
      return 'itemBehind';
    default:
      return 'itemUnknown';
  }
}

type ListFacts = { readonly count: number; readonly items: readonly ListedItem[] };

function sayItems({ count, items }: ListFacts, texts: ChatTexts): string {
  if (count === 0) return texts.itemsNone;
  const more = count - items.length;
  return [
    fillText(texts.itemsHeading, { count }),
    ...items.map((item) => itemLine(item, texts)),
    ...(more > 0 ? [fillText(texts.itemsMore, { count: more })] : []),
    texts.itemsHint,
  ].join('\n');
}

/** Formats one line of the list of waiting messages. */
export function itemLine(item: ListedItem, texts: ChatTexts): string {
  const marks = [
    ...(item.isAhead ? [texts.itemIsAhead] : []),
    ...(item.state === 'fetching' ? [texts.itemIsFetching] : []),
    ...(item.state === 'held' ? [texts.itemIsHeld] : []),
    ...(item.kind === 'correction' ? [texts.itemIsCorrection] : []),
    ...(item.files > 0 && item.state !== 'fetching'
      ? [fillText(item.files === 1 ? texts.itemFile : texts.itemFiles, { count: item.files })]
      : []),
  ];
  const { number } = item;
  const sender = cleanLabel(item.senderName) || item.sender;
  const text = item.excerpt === undefined ? '“…”' : `“${stripControls(item.excerpt)}”`;
  const line = fillText(texts.itemLine, { number, sender, age: durationText(item.ageMs), text });
  return marks.length === 0 ? line : `${line} (${marks.join(', ')})`;
}

/** Parsed words of `/queue …`. */
type QueueRequest =
  | { readonly kind: 'show' }
  | { readonly kind: 'reset' }
  /** Only the settings that were named; never empty. */
  | { readonly kind: 'set'; readonly changes: Partial<QueueSettings> }
  | ItemRequest;

/** An action on all waiting messages, or on the one listed as `#17`. */
type ItemRequest =
  | { readonly kind: 'list' }
  | { readonly kind: 'cancel-all' }
  | { readonly kind: 'cancel' | 'promote'; readonly number: number }
  | { readonly kind: 'edit'; readonly number: number; readonly text: string };

function isItemRequest(request: QueueRequest): request is ItemRequest {
  return request.kind !== 'show' && request.kind !== 'reset' && request.kind !== 'set';
}

/** Longest debounce or quiet window that chat may set: with a longer one the bot would seem dead. */
const maxWaitMs = 600_000;
const maxCap = 1000;

/**
 * Parses the words after `/queue`: `[mode] [debounce:2s] [quiet:1s] [cap:25] [drop:summarize]`, `reset`, `list`,
 * `cancel 17`, `cancel all`, `promote 17`, or `edit 17 the new words`. The number may be written `#17`.
 */
function parseQueueRequest(text: string): QueueRequest | Problem {
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

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** Reads `500ms`, `2s`, `1.5s` or `1m` as milliseconds; undefined for anything else. */
function parseDuration(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m)$/i.exec(text) ?? [];
  const scale = unitMs[unit.toLowerCase()];
  return amount === undefined || scale === undefined ? undefined : Math.round(Number(amount) * scale);
}

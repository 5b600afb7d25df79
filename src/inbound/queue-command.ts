/** `/queue`: the settings of the lane with where each comes from, what waits in it, and changes of both. */
import type { QueueSettings } from '#contracts/queue-settings.ts';
import { cleanLabel } from '../replies/clean-untrusted.ts';
import { stripControls } from '../replies/control-characters.ts';
import { platformRef } from '../sessions/platform-ref.ts';
import type { Store } from '../store/base/command.ts';
import { newRowId } from '../store/base/row-id.ts';
import type { Actor } from '../store/items/actor.ts';
import { readAuthor } from '../store/items/edit-item.ts';
import { readLaneStatus } from '../store/reads/read-sessions.ts';
import { readWaitingItems, type WaitingItem } from '../store/reads/read-waiting-items.ts';
import { fillNotice, type Notices } from '../texts/notices.ts';
import { promptOfEdit } from './contents.ts';
import { type Gate, queueLevelsFor } from './gate.ts';
import { reachOfStop } from './link-command.ts';
import type { Decided } from './pair-command.ts';
import { type CommandArrival, canonical } from './propose.ts';
import type { ItemRequest, QueueRequest } from './queue-request.ts';

export type QueueDeps = { readonly store: Store; readonly gate: Gate };

/** How many of the waiting messages `/queue list` shows. */
const shown = 20;

export async function decideQueue(
  deps: QueueDeps,
  arrival: CommandArrival,
  request: QueueRequest,
): Promise<Decided> {
  const { notices } = deps.gate;
  switch (request.kind) {
    case 'show':
      return answer(await describeLane(deps, arrival));
    case 'reset':
    case 'set': {
      const change = request.kind === 'reset' ? 'reset' : request.changes;
      const done =
        request.kind === 'reset' ? [notices.queueReset, notices.queueSettings] : [notices.queueSettings];
      return { effect: { kind: 'queue', change }, replies: { done: done.join(' ') } };
    }
    case 'list':
      return answer(await describeItems(deps, arrival));
    default:
      return decideItem(deps, arrival, request);
  }
}

function answer(done: string): Decided {
  return { effect: { kind: 'none' }, replies: { done } };
}

type Change = Exclude<ItemRequest, { readonly kind: 'list' }>;

async function decideItem(
  { store, gate }: QueueDeps,
  arrival: CommandArrival,
  request: Change,
): Promise<Decided> {
  const { notices } = gate;
  const actor = actorOf(gate, arrival);
  const late = {
    ended: notices.itemEnded,
    nothing: notices.itemUnknown,
    notPermitted: fillNotice(notices.notPermitted, { who: 'whoever sent it, an admin or my owner' }),
  };
  switch (request.kind) {
    case 'cancel-all': {
      const change = { ...request, told: notices.itemCancelledTold };
      const replies = { done: notices.itemsCancelled, nothing: notices.itemsNone };
      return { effect: { kind: 'item', actor, change }, replies };
    }
    case 'cancel': {
      const change = { kind: 'cancel', number: request.number, told: notices.itemCancelledTold } as const;
      const replies = { ...late, done: notices.itemCancelled, working: notices.itemWorking };
      return { effect: { kind: 'item', actor, change }, replies };
    }
    case 'promote': {
      const change = { kind: 'promote', number: request.number } as const;
      const { itemPromoted: done, itemTaken: working, itemKept: kept, itemBehind: behind } = notices;
      const notPermitted = fillNotice(notices.notPermitted, { who: 'an admin or my owner' });
      const replies = { ...late, done, working, kept, behind, notPermitted };
      return { effect: { kind: 'item', actor, change }, replies };
    }
    case 'edit': {
      const { number, text } = request;
      const author = await store.read(readAuthor, { laneKey: arrival.lane.key, number });
      if (author === undefined) return answer(fillNotice(notices.itemUnknown, { number }));
      const prompt = promptOfEdit(gate, author, text);
      const change = { kind: 'edit', number, text, prompt, newId: newRowId() } as const;
      const { itemEdited: done, itemCorrected: steered, itemKept: kept } = notices;
      const notPermitted = fillNotice(notices.notPermitted, { who: 'whoever sent it, or my owner,' });
      return {
        effect: { kind: 'item', actor, change },
        replies: { ...late, done, steered, kept, notPermitted },
      };
    }
    default:
      return request satisfies never;
  }
}

/** A command has the rights of the account that it came from; messages are a person's, from any account. */
function actorOf(gate: Gate, arrival: CommandArrival): Actor {
  const { chat, route, sender } = arrival.arrival.envelope;
  const ref = platformRef(route.channel, sender.id);
  const isGroup = chat.kind === 'group';
  return {
    ref,
    people: [ref, ...(reachOfStop(gate, arrival)?.people ?? [])],
    ...(arrival.authority !== 'owner' && { mayRewordOwnOnly: true }),
    mayChangeAny: arrival.authority === 'owner' || (isGroup && sender.isAdmin === true),
    mayPromoteOwn: !isGroup,
    conversationKey: arrival.event.conversationKey,
  };
}

const names = { mode: 'mode', debounceMs: 'debounce', quietMs: 'quiet', cap: 'cap', drop: 'drop' } as const;
const settings = Object.keys(names) as readonly (keyof QueueSettings)[];

async function describeLane({ store, gate }: QueueDeps, arrival: CommandArrival): Promise<string> {
  const { envelope } = arrival.arrival;
  const { route, chat } = canonical(envelope, arrival.arrival.facts);
  const status = await store.read(readLaneStatus, { laneKey: arrival.lane.key });
  const session = { level: 'session', names: status?.overrides ?? {} } as const;
  const { channel, conversation } = route;
  const levels = [session, ...queueLevelsFor(gate, { channel, conversation, kind: chat.kind })];
  const { notices } = gate;
  const texts = {
    session: notices.queueNamedHere,
    conversation: notices.queueOfConversation,
    channel: fillNotice(notices.queueOfChannel, { channel }),
    global: notices.queueOfAll,
  };
  const sources = levels.flatMap(({ level, names: named }, index) => {
    const isFirst = (name: keyof QueueSettings) =>
      name in named && !levels.slice(0, index).some((before) => name in before.names);
    const mine = settings.filter(isFirst).map((name) => names[name]);
    return mine.length === 0 ? [] : [fillNotice(texts[level], { names: mine.join(', ') })];
  });
  const count = status?.waiting ?? 0;
  return [
    describeQueue(notices, { ...arrival.lane.settings, ...session.names }),
    sources.join(' '),
    count === 0 ? notices.itemsNone : fillNotice(notices.itemsWaiting, { count }),
  ].join('\n');
}

export function describeQueue(notices: Notices, settings: QueueSettings): string {
  const { mode, debounceMs: debounce, quietMs: quiet, cap, drop } = settings;
  return fillNotice(notices.queueSettings, { mode, debounce, quiet, cap, drop });
}

async function describeItems({ store, gate }: QueueDeps, arrival: CommandArrival): Promise<string> {
  const { notices } = gate;
  const items = await store.read(readWaitingItems, { laneKey: arrival.lane.key });
  if (items.length === 0) return notices.itemsNone;
  const actor = actorOf(gate, arrival);
  // In a group everybody has read it anyway; a direct lane that several people share tells none of the others' words.
  const isShown = (item: WaitingItem) =>
    arrival.arrival.envelope.chat.kind === 'group' ||
    actor.mayChangeAny ||
    actor.people.includes(item.sender);
  const more = items.length - shown;
  return [
    fillNotice(notices.itemsHeading, { count: items.length }),
    ...items.slice(0, shown).map((item) => itemLine(notices, item, isShown(item))),
    ...(more > 0 ? [fillNotice(notices.itemsMore, { count: more })] : []),
    notices.itemsHint,
  ].join('\n');
}

function itemLine(notices: Notices, item: WaitingItem, isShown: boolean): string {
  const marks = [
    ...(item.isAhead ? [notices.itemIsAhead] : []),
    ...(item.state === 'fetching' ? [notices.itemIsFetching] : []),
    ...(item.state === 'held' ? [notices.itemIsHeld] : []),
    ...(item.kind === 'correction' ? [notices.itemIsCorrection] : []),
    ...(item.files > 0 && item.state !== 'fetching'
      ? [fillNotice(notices.itemFiles, { count: item.files })]
      : []),
  ];
  const { number } = item;
  const sender = cleanLabel(item.senderName) || item.sender;
  const text = isShown ? `“${stripControls(item.excerpt)}”` : '“…”';
  const line = fillNotice(notices.itemLine, { number, sender, age: ageOf(item.ageMs), text });
  return marks.length === 0 ? line : `${line} (${marks.join(', ')})`;
}

function ageOf(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

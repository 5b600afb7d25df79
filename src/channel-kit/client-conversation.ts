/**
 * One client's view of one conversation, as a pure state machine: the channels that serve clients
 * pass it inputs and perform the actions that it returns. It decides what to read from the timeline so
 * that a client misses nothing. Events may be lost, so each one only triggers another read.
 */

import { type ClientEvent, changesLane } from '#contracts/feed.ts';
import type { TimelineActivity, TimelineItem } from '#contracts/timeline.ts';
import {
  type ClientFrame,
  clientFrameSchema,
  type EffectFrame,
  type HelloFrame,
  type ProblemFrame,
  type ServerFrame,
  tooLongText,
} from './client-frames.ts';
import { parseJson } from './parse-json.ts';

export type ConversationState = {
  readonly conversation: string | undefined;
  /** The session of the client's positions; undefined while it has none. */
  readonly of: string | undefined;
  /** The newest position the client has. */
  readonly position: number;
  /** The positions of people's messages whose outcome is still open, so that their state will change. */
  readonly open: readonly number[];
  readonly reading: 'no' | 'yes' | 'again';
  /** How often the client has said hello. */
  readonly hellos: number;
  /** Kinds of events that the client has asked for. */
  readonly events: readonly string[];
};

export type ConversationInput =
  | { readonly kind: 'frame'; readonly text: string }
  | { readonly kind: 'event'; readonly event: ClientEvent }
  | {
      readonly kind: 'items';
      /** The session that was read. */
      readonly of: string;
      readonly items: readonly TimelineItem[];
      /** Read after the items. */
      readonly standing: TimelineActivity;
    };

export type ConversationAction =
  | { readonly kind: 'reply'; readonly frame: ServerFrame }
  /** From now on, watch only the session to which this conversation now leads. */
  | { readonly kind: 'watch'; readonly conversation: string }
  /** Read the timeline and feed the result back as `items`. */
  | { readonly kind: 'read'; readonly after?: number }
  | { readonly kind: 'accept'; readonly frame: EffectFrame };

export type ConversationStep = {
  readonly state: ConversationState;
  readonly actions: readonly ConversationAction[];
};

/** How many items one read asks for. */
export const readLimit = 200;

export const newConversation: ConversationState = {
  conversation: undefined,
  of: undefined,
  position: 0,
  open: [],
  reading: 'no',
  hellos: 0,
  events: [],
};

export function stepConversation(state: ConversationState, input: ConversationInput): ConversationStep {
  switch (input.kind) {
    case 'frame':
      return onFrame(state, input.text);
    case 'event':
      return onEvent(state, input.event);
    case 'items':
      return onItems(state, input);
    default:
      return input satisfies never;
  }
}

function onFrame(state: ConversationState, text: string): ConversationStep {
  const frame = parseFrame(text);
  if (frame.type === 'problem') return { state, actions: [{ kind: 'reply', frame }] };
  if (frame.type === 'hello') return onHello(state, frame);
  if (state.conversation === undefined) {
    return problem(state, 'hello_first', 'Say hello before anything else.');
  }
  return { state, actions: [{ kind: 'accept', frame }] };
}

function onHello(
  state: ConversationState,
  { conversation, after = 0, of = state.of, events = [] }: HelloFrame,
): ConversationStep {
  if (state.conversation !== undefined && state.conversation !== conversation) {
    return problem(state, 'invalid_frame', 'Another conversation needs its own connection.');
  }
  const watch: readonly ConversationAction[] =
    state.conversation === undefined ? [{ kind: 'watch', conversation }] : [];
  const hellos = state.hellos + 1;
  const read = requestRead({ ...state, conversation, of, events, hellos, position: after });
  return { state: read.state, actions: [...watch, ...read.actions] };
}

function onEvent(state: ConversationState, event: ClientEvent): ConversationStep {
  const isKnown = clientEvents.includes(event.kind) || state.events.includes(event.kind);
  const forward: readonly ConversationAction[] =
    isKnown && event.kind !== 'changed' ? [{ kind: 'reply', frame: { type: 'event', event } }] : [];
  // A read that is on its way may miss the call's start or end, so another one follows it.
  const isStale = event.kind === 'tool' && state.reading !== 'no';
  const read = changesLane(event) || isStale ? requestRead(state) : { state, actions: [] };
  return { state: read.state, actions: [...forward, ...read.actions] };
}

/** Kinds of events that every client knows. */
const clientEvents: readonly string[] = ['changed', 'run', 'parked', 'tool'];

function onItems(
  state: ConversationState,
  { of, items, standing }: Extract<ConversationInput, { kind: 'items' }>,
): ConversationStep {
  if (state.of !== undefined && state.of !== of) return startOver(state, of);
  const last = items.at(-1)?.position ?? 0;
  const seen = new Set(items.map((item) => item.position));
  const done: ConversationState = {
    ...state,
    of,
    position: Math.max(last, state.position),
    open: [...state.open.filter((at) => !seen.has(at)), ...items.filter(isOpen).map((item) => item.position)],
    reading: 'no',
  };
  const reply: ConversationAction = { kind: 'reply', frame: { type: 'items', of, items } };
  const next = nextRead(state, done, items.length >= readLimit ? last : undefined);
  // Before another read the standing would already be outdated. Otherwise this read began after every hello.
  const isLast = next.actions.length === 0;
  const { hellos } = state;
  const stands: ConversationAction = { kind: 'reply', frame: { type: 'standing', hellos, ...standing } };
  return { state: next.state, actions: isLast ? [reply, stands] : [reply, ...next.actions] };
}

/** Starts over, because the conversation now leads to another session, in which earlier positions are meaningless. */
function startOver(state: ConversationState, of: string): ConversationStep {
  const { conversation = '' } = state;
  const read = requestRead({ ...state, of, position: 0, open: [], reading: 'no' });
  return { state: read.state, actions: [{ kind: 'watch', conversation }, ...read.actions] };
}

/** Reads the next page after a full one; a change during the read requires another read from the start. */
function nextRead(
  before: ConversationState,
  done: ConversationState,
  pageEnd: number | undefined,
): ConversationStep {
  if (pageEnd !== undefined) {
    return { state: { ...done, reading: before.reading }, actions: [{ kind: 'read', after: pageEnd }] };
  }
  return before.reading === 'again' ? requestRead(done) : { state: done, actions: [] };
}

/** Allows one read at a time; requests during it are served by one more read afterwards. */
function requestRead(state: ConversationState): ConversationStep {
  if (state.reading !== 'no') return { state: { ...state, reading: 'again' }, actions: [] };
  const after = Math.min(state.position, ...state.open.map((at) => at - 1));
  return {
    state: { ...state, reading: 'yes' },
    actions: [{ kind: 'read', ...(after > 0 ? { after } : {}) }],
  };
}

const openStates: ReadonlySet<string> = new Set(['held', 'waiting', 'taken', 'delivering']);

function isOpen(item: TimelineItem): boolean {
  return item.author.kind === 'person' && openStates.has(item.state);
}

function parseFrame(text: string): ClientFrame | ProblemFrame {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return problemFrame('invalid_frame', 'Not JSON.');
  }
  const parsed = clientFrameSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const id = idOf(value);
  const isTooLong = parsed.error.issues.some((issue) => issue.code === 'too_big' && issue.path[0] === 'text');
  return isTooLong
    ? problemFrame('too_long', tooLongText, id)
    : problemFrame('invalid_frame', "The frame isn't valid.", id);
}

function idOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || !('id' in value)) return undefined;
  return typeof value.id === 'string' && value.id.length <= 64 ? value.id : undefined;
}

function problem(state: ConversationState, code: ProblemFrame['code'], message: string): ConversationStep {
  return { state, actions: [{ kind: 'reply', frame: problemFrame(code, message) }] };
}

function problemFrame(code: ProblemFrame['code'], message: string, id?: string): ProblemFrame {
  return { type: 'problem', code, message, retry: false, ...(id === undefined ? {} : { id }) };
}

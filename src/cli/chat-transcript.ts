/**
 * The messages that a chat client has shown and those it still waits for, as a pure function over frames. Each message
 * is shown once, whether it came live or was read; the client's own lines aren't repeated.
 */
import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { ChildView } from '#contracts/child.ts';
import type { TimelineItem } from '#contracts/timeline.ts';
import { childLine } from './child-lines.ts';

export type ChatLine =
  | { readonly kind: 'person' | 'agent' | 'notice' | 'problem' | 'tool'; readonly text: string }
  /** The answer so far; replaces the previous preview, and removes it when undefined. */
  | { readonly kind: 'preview'; readonly text: string | undefined };

export type ChatTranscript = {
  readonly shown: ReadonlySet<string>;
  /** The session in which positions count. */
  readonly of: string | undefined;
  /** The newest position seen. */
  readonly position: number;
  /** Own messages without an outcome, by id. */
  readonly waiting: ReadonlyMap<string, WaitingState>;
  /** Positions of the own messages, where known. */
  readonly openAt: ReadonlyMap<string, number>;
  /** The reason a parked run waits, shown once. */
  readonly waitsFor: string | undefined;
  /** States of the sub-agents shown so far, by id. */
  readonly children: ReadonlyMap<string, string>;
  readonly isLoaded: boolean;
  /** Formatted previews arrive for this answer, so the plain ones are ignored. */
  readonly hasDraft: boolean;
};

type WaitingState = 'sent' | 'stored';

export type ChatStep = { readonly transcript: ChatTranscript; readonly lines: readonly ChatLine[] };

export const emptyTranscript: ChatTranscript = {
  shown: new Set(),
  of: undefined,
  position: 0,
  waiting: new Map(),
  openAt: new Map(),
  waitsFor: undefined,
  children: new Map(),
  isLoaded: false,
  hasDraft: false,
};

/** How many past messages are shown at the start. */
const historyLength = 20;
const openStates: ReadonlySet<string> = new Set(['held', 'waiting', 'taken']);

/** Returns where a connection resumes reading: before every own message whose outcome isn't known. */
export function resumeFrom({ of, position, openAt }: ChatTranscript) {
  return { of, after: Math.min(position, ...[...openAt.values()].map((at) => at - 1)) };
}

export function sent(transcript: ChatTranscript, id: string): ChatTranscript {
  return {
    ...transcript,
    shown: new Set(transcript.shown).add(id),
    waiting: new Map(transcript.waiting).set(id, 'sent'),
  };
}

/** Applies a frame. `withHistory: false` shows nothing that was said before this client connected. */
export function received(
  transcript: ChatTranscript,
  frame: ServerFrame,
  options: { readonly withHistory: boolean },
): ChatStep {
  switch (frame.type) {
    case 'ack':
      return onAck(transcript, frame);
    case 'items':
      return onItems(transcript, frame, options.withHistory);
    case 'message':
      return onMessage(transcript, frame.messageId, frame.text);
    case 'edited':
      return { transcript, lines: [{ kind: 'agent', text: `(corrected) ${frame.text}` }] };
    case 'standing':
      return onChildren(onActivity(transcript, frame), frame.children ?? []);
    case 'preview':
      return {
        transcript: { ...transcript, hasDraft: true },
        lines: [{ kind: 'preview', text: frame.text }],
      };
    case 'event':
      return onEvent(transcript, frame.event);
    case 'problem':
      return onProblem(transcript, frame);
    case 'deleted':
      return { transcript, lines: [] };
    default:
      return frame satisfies never;
  }
}

function onAck(transcript: ChatTranscript, frame: Extract<ServerFrame, { type: 'ack' }>): ChatStep {
  if (frame.state === 'ignored' || frame.state === 'refused') {
    const text = `${frame.state}${frame.reason === undefined ? '' : `: ${frame.reason}`}`;
    return { transcript: settle(transcript, frame.id), lines: [{ kind: 'problem', text }] };
  }
  // A command's answer is already in the timeline; the message itself may not be.
  if (frame.state === 'command' || frame.state === 'noted') {
    return { transcript: settle(transcript, frame.id), lines: [] };
  }
  if (!transcript.waiting.has(frame.id)) return { transcript, lines: [] };
  const waiting = new Map(transcript.waiting).set(frame.id, 'stored');
  return { transcript: { ...transcript, waiting }, lines: [] };
}

function onItems(before: ChatTranscript, { of, items }: ItemsFrame, withHistory: boolean): ChatStep {
  const isElsewhere = before.of !== undefined && before.of !== of;
  const transcript = isElsewhere ? startOver(before) : before;
  const own = items.filter((item) => transcript.waiting.has(item.messageId));
  const fresh = items.filter((item) => !transcript.shown.has(item.messageId));
  const past = withHistory ? fresh.slice(-historyLength) : [];
  // The first page is history: own messages are sent after it.
  const visible = transcript.isLoaded ? fresh : past;
  const waiting = new Map(transcript.waiting);
  const openAt = new Map(transcript.openAt);
  for (const { messageId, state, position } of own) {
    if (openStates.has(state)) openAt.set(messageId, position);
    else openAt.delete(messageId);
    if (!openStates.has(state)) waiting.delete(messageId);
  }
  const clearing: readonly ChatLine[] = visible.length > 0 ? [{ kind: 'preview', text: undefined }] : [];
  return {
    transcript: {
      ...transcript,
      of,
      waiting,
      openAt,
      shown: new Set([...transcript.shown, ...items.map((item) => item.messageId)]),
      position: items.reduce((newest, item) => Math.max(newest, item.position), transcript.position),
      isLoaded: true,
    },
    lines: [
      ...(isElsewhere ? [movedLine] : []),
      ...clearing,
      ...visible.map(lineOf),
      ...own.flatMap(endLine),
    ],
  };
}

type ItemsFrame = Extract<ServerFrame, { type: 'items' }>;

const movedLine: ChatLine = { kind: 'notice', text: 'This conversation continues in another session.' };

/** Drops the previous session's messages, whose outcomes won't appear here. */
function startOver(transcript: ChatTranscript): ChatTranscript {
  const waiting = new Map([...transcript.waiting].filter(([id]) => !transcript.openAt.has(id)));
  return { ...transcript, waiting, openAt: new Map(), position: 0, isLoaded: false };
}

function lineOf(item: TimelineItem): ChatLine {
  const choices = (item.buttons ?? []).map(({ label, command }) => `\n${label}: ${command}`);
  return { kind: item.author.kind, text: `${item.text}${choices.join('')}` };
}

/** Says how a message ended if its outcome shows nothing on its own. */
function endLine(item: TimelineItem): readonly ChatLine[] {
  if (item.state === 'cancelled' || item.state === 'failed' || item.state === 'refused') {
    const reason = item.reason === undefined ? '' : `: ${item.reason}`;
    return [{ kind: 'problem', text: `${item.state}${reason}` }];
  }
  return item.state === 'silent' ? [{ kind: 'notice', text: 'read; no answer needed' }] : [];
}

function onMessage(transcript: ChatTranscript, id: string, text: string): ChatStep {
  if (transcript.shown.has(id)) return { transcript, lines: [] };
  return {
    transcript: { ...transcript, shown: new Set(transcript.shown).add(id), hasDraft: false },
    lines: [
      { kind: 'preview', text: undefined },
      { kind: 'agent', text },
    ],
  };
}

function onEvent(
  transcript: ChatTranscript,
  event: Extract<ServerFrame, { type: 'event' }>['event'],
): ChatStep {
  switch (event.kind) {
    case 'tool':
      return { transcript, lines: event.state === 'started' ? [{ kind: 'tool', text: event.name }] : [] };
    case 'run':
      if (event.state !== 'ended') return { transcript, lines: [] };
      return {
        transcript: { ...transcript, hasDraft: false },
        lines: [{ kind: 'preview', text: undefined }],
      };
    case 'parked':
      return onWaiting(transcript, event.reason);
    default:
      return { transcript, lines: [] };
  }
}

/** Removes the preview when no run is active. */
function onActivity(
  transcript: ChatTranscript,
  { run }: Extract<ServerFrame, { type: 'standing' }>,
): ChatStep {
  if (run !== undefined) return onWaiting(transcript, run.waitsFor);
  return {
    transcript: { ...transcript, hasDraft: false, waitsFor: undefined },
    lines: [{ kind: 'preview', text: undefined }],
  };
}

/** Shows a line whenever a sub-agent's state changes. Of the earlier ones, only those still live are shown. */
function onChildren({ transcript, lines }: ChatStep, children: readonly ChildView[]): ChatStep {
  const isNew = ({ id, state }: ChildView) =>
    transcript.children.get(id) !== state && (state !== 'done' || transcript.children.has(id));
  const seen = new Map([...transcript.children, ...children.map(({ id, state }) => [id, state] as const)]);
  return {
    transcript: { ...transcript, children: seen },
    lines: [
      ...lines,
      ...children.filter(isNew).map((child) => ({ kind: 'tool', text: childLine(child) }) as const),
    ],
  };
}

function onWaiting(transcript: ChatTranscript, waitsFor: string | undefined): ChatStep {
  const isNew = waitsFor !== undefined && waitsFor !== transcript.waitsFor;
  return {
    transcript: { ...transcript, waitsFor },
    lines: isNew ? [{ kind: 'tool', text: `waiting for ${waitsFor}` }] : [],
  };
}

function onProblem(transcript: ChatTranscript, frame: Extract<ServerFrame, { type: 'problem' }>): ChatStep {
  if (frame.retry) return { transcript, lines: [] };
  return {
    transcript: settle(transcript, frame.id ?? ''),
    lines: [{ kind: 'problem', text: frame.message }],
  };
}

function settle(transcript: ChatTranscript, id: string): ChatTranscript {
  const waiting = new Map(transcript.waiting);
  waiting.delete(id);
  const openAt = new Map(transcript.openAt);
  openAt.delete(id);
  return { ...transcript, waiting, openAt };
}

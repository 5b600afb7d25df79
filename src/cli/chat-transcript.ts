/**
 * Turns the changes of a conversation, the same as the page's, into lines to print. A terminal can only add lines, so the
 * printed ones are remembered; the client's own lines aren't repeated.
 */
import { basename, join } from 'node:path';
import { cleanFileName } from '#channel-kit/clean-text.ts';
import type { ChildView } from '#contracts/child.ts';
import type { TaskActivity } from '#contracts/task.ts';
import type { SentFile } from '#contracts/timeline.ts';
import { childFacts } from '../client/child-facts.js';
import { emptyConversation, messagesInOrder, notesOf, ownChildren, reduce } from '../client/conversation.js';
import type { ClientMessage, Conversation, Frame } from '../client/conversation-types.ts';
import { goneText, sizeText } from '../client/file-facts.js';
import { countsOf, taskFacts } from '../client/task-facts.js';

export type ChatLine =
  | { readonly kind: 'person' | 'agent' | 'notice' | 'problem' | 'tool'; readonly text: string }
  /** Output and answer so far; replaces the previous preview, and removes it when undefined. */
  | { readonly kind: 'preview'; readonly text: string | undefined };

export type ChatTranscript = {
  readonly conversation: Conversation;
  /** Messages, calls and notes that are printed. */
  readonly printed: ReadonlySet<string>;
  /** Own messages without an outcome, by id. */
  readonly waiting: ReadonlySet<string>;
  /** States of the sub-agents that are printed, by id. */
  readonly children: ReadonlyMap<string, string>;
  /** How far the tasks had come when they were printed, by id. */
  readonly tasks: ReadonlyMap<string, string>;
};

export type ChatStep = { readonly transcript: ChatTranscript; readonly lines: readonly ChatLine[] };

export const emptyTranscript: ChatTranscript = {
  conversation: emptyConversation,
  printed: new Set(),
  waiting: new Set(),
  children: new Map(),
  tasks: new Map(),
};

/** How many past messages are shown at the start. */
const historyLength = 20;
const openStates: ReadonlySet<string> = new Set([
  'sending',
  'accepted',
  'duplicate',
  'held',
  'waiting',
  'taken',
]);

/** Adds an own message, sent at `at`, ms. */
export function sent(
  transcript: ChatTranscript,
  frame: { id: string; text: string },
  at: number,
): ChatTranscript {
  return {
    ...transcript,
    conversation: reduce(transcript.conversation, { kind: 'unsent', frame, at }),
    printed: new Set(transcript.printed).add(frame.id),
    waiting: new Set(transcript.waiting).add(frame.id),
  };
}

/** The connection is lost; the next one reports current activity again. */
export function disconnected(transcript: ChatTranscript): ChatTranscript {
  const conversation = reduce(transcript.conversation, { kind: 'connection', state: 'lost' });
  return { ...transcript, conversation };
}

/**
 * Applies a frame. `withHistory: false` shows nothing that was said before this client connected. `mediaDir`: where files
 * that were sent are kept.
 */
export function received(
  before: ChatTranscript,
  frame: Frame,
  { withHistory, mediaDir }: { readonly withHistory: boolean; readonly mediaDir: string },
): ChatStep {
  const reduced = reduce(before.conversation, { kind: 'frame', frame });
  // No preview follows the end of a run: its last text is shown before that is stored.
  const conversation = isEnd(frame) ? reduce(reduced, { kind: 'preview-settled' }) : reduced;
  const hasMoved = before.conversation.of !== undefined && before.conversation.of !== conversation.of;
  const isFirst = hasMoved || !before.conversation.isLoaded;
  const fresh = messagesInOrder(conversation).filter(({ id }) => !before.printed.has(id));
  // The first page is history: own messages are sent after it.
  const shown = isFirst ? (withHistory ? fresh.slice(-historyLength) : []) : fresh;
  const waiting = [...before.waiting].filter((id) => isOpen(id, before.conversation, conversation));
  const ended = [...before.waiting].filter((id) => !waiting.includes(id));
  const activity = activityOf(conversation).filter(({ key }) => !before.printed.has(key));
  const known = [...fresh.map(({ id }) => id), ...activity.map(({ key }) => key)];
  const children = ownChildren(conversation);
  const { tasks } = conversation;
  return {
    transcript: {
      conversation,
      printed: known.length > 0 ? new Set([...before.printed, ...known]) : before.printed,
      waiting: new Set(waiting),
      children: new Map([...before.children, ...children.map(({ id, state }) => [id, state] as const)]),
      tasks: new Map([...before.tasks, ...tasks.map((task) => [task.id, stageOf(task)] as const)]),
    },
    lines: [
      ...(hasMoved ? [movedLine] : []),
      ...previewLine(before.conversation, conversation),
      ...shown.map((message) => lineOf(message, mediaDir)),
      ...ended.flatMap((id) => endLine(conversation.messages.get(id))),
      ...frameLine(frame, before.waiting),
      ...activity.map(({ text }) => ({ kind: 'tool', text }) as const),
      ...children.filter((child) => isNews(child, before.children)).map(lineOfChild),
      ...tasks.filter((task) => isTaskNews(task, before.tasks)).map(lineOfTask),
    ],
  };
}

const movedLine: ChatLine = { kind: 'notice', text: 'This conversation continues in another session.' };

function isEnd(frame: Frame): boolean {
  if (frame.type === 'standing') return frame.run === undefined;
  return frame.type === 'event' && frame.event.kind === 'run' && frame.event.state === 'ended';
}

/** Says whether an own message has no outcome yet. A message of a session that was left won't get one here. */
function isOpen(id: string, before: Conversation, { messages }: Conversation): boolean {
  const message = messages.get(id);
  if (message !== undefined) return openStates.has(message.state);
  return before.messages.get(id)?.position === undefined;
}

function lineOf({ author, text, file, buttons = [] }: ClientMessage, mediaDir: string): ChatLine {
  const choices = buttons.map(({ label, command }) => `${label}: ${command}`);
  const shown = text === '' && file ? [] : [text];
  return {
    kind: author.kind,
    text: [...shown, ...(file ? [fileText(file, mediaDir)] : []), ...choices].join('\n'),
  };
}

/** Returns `notes.pdf, 12 kB: /path/of/its/copy`. Only a copy's own name is joined to the folder. */
function fileText({ name, sizeBytes, stored }: SentFile, mediaDir: string): string {
  const shown = cleanFileName(name);
  if (sizeBytes === undefined) return `${shown} (${goneText})`;
  return `${shown}, ${sizeText(sizeBytes)}: ${join(mediaDir, cleanFileName(basename(stored)))}`;
}

/** Says how a message ended if its outcome shows nothing on its own. */
function endLine(message: ClientMessage | undefined): readonly ChatLine[] {
  if (message?.problem !== undefined) return [{ kind: 'problem', text: message.problem }];
  if (message?.state === 'silent') return [{ kind: 'notice', text: 'read; no answer needed' }];
  return message === undefined ? [] : refusalLine(message.state, message.reason);
}

const refusals: ReadonlySet<string> = new Set(['cancelled', 'failed', 'ignored', 'refused']);

function refusalLine(state: string, reason: string | undefined): readonly ChatLine[] {
  if (!refusals.has(state)) return [];
  return [{ kind: 'problem', text: `${state}${reason === undefined ? '' : `: ${reason}`}` }];
}

/** Says what only the frame tells: a correction, or that something that isn't a message was refused. */
function frameLine(frame: Frame, waiting: ReadonlySet<string>): readonly ChatLine[] {
  if (frame.type === 'edited') return [{ kind: 'agent', text: `(corrected) ${frame.text}` }];
  if (frame.type === 'ack' && !waiting.has(frame.id)) return refusalLine(frame.state, frame.reason);
  if (frame.type !== 'problem' || frame.retry || waiting.has(frame.id ?? '')) return [];
  return [{ kind: 'problem', text: frame.message }];
}

/** The run's calls and notes, each to be printed once. */
function activityOf({ run }: Conversation): readonly { readonly key: string; readonly text: string }[] {
  if (run === undefined) return [];
  const calls = run.tools.filter(({ state }) => state === 'started');
  return [
    ...calls.map(({ callId, name }) => ({ key: `${run.id} ${callId}`, text: name })),
    ...notesOf({ run }).map(({ text }) => ({ key: `${run.id} ${text}`, text })),
  ];
}

function isNews({ id, state }: ChildView, children: ChatTranscript['children']): boolean {
  return children.get(id) !== state && (state !== 'done' || children.has(id));
}

/** Returns `sub-agent “research”: done in 12 s, 3,400 tokens`, indented by its depth. */
function lineOfChild(child: ChildView): ChatLine {
  const indent = '  '.repeat(child.depth - 1);
  return { kind: 'tool', text: `${indent}sub-agent “${child.name}”: ${childFacts(child)}` };
}

/** Returns what, when it changes, is worth another line: not each dispatch. */
function stageOf(task: TaskActivity): string {
  const { done = 0, failed = 0, skipped = 0 } = countsOf(task);
  return `${task.state} ${done} ${failed} ${skipped}`;
}

function isTaskNews(task: TaskActivity, tasks: ChatTranscript['tasks']): boolean {
  return tasks.get(task.id) !== stageOf(task) && (task.endedAt === undefined || tasks.has(task.id));
}

/** Returns `task “compare suppliers”: 3 of 5 subtasks done, b runs`, indented by the depth of its coordinator. */
function lineOfTask(task: TaskActivity): ChatLine {
  const indent = '  '.repeat(task.laneKey.split('@').length - 1);
  return { kind: 'tool', text: `${indent}task “${task.title}”: ${taskFacts(task)}` };
}

/** Lines of a running tool's output above the answer. */
const outputLines = 5;

function previewLine(before: Conversation, after: Conversation): readonly ChatLine[] {
  const text = previewOf(after);
  return text === previewOf(before) ? [] : [{ kind: 'preview', text }];
}

function previewOf({ run, preview }: Conversation): string | undefined {
  const outputs = (run?.tools ?? []).flatMap(
    ({ output }) => output?.trimEnd().split('\n').slice(-outputLines) ?? [],
  );
  const lines = [...outputs, ...(preview ? [preview.text] : [])];
  return lines.length === 0 ? undefined : lines.join('\n');
}

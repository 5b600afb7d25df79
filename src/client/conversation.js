/**
 * A conversation as a client shows it, page and terminal alike: a pure function of the gateway's frames, which carry the
 * session's feed and what is stored. Messages and tool calls are kept by id, so what arrives twice (live and read, sent
 * and stored) changes nothing, and the stored activity replaces what events reported.
 *
 * The page loads this file as it is: types are in comments, and tsc checks them.
 */
/**
 * @import { FeedEvent } from '#contracts/feed.ts'
 * @import { TimelineItem } from '#contracts/timeline.ts'
 * @import {
 *   ClientMessage, ClientRun, Conversation, ConversationInput, Entry, Frame, RunEvent, Step
 * } from './conversation-types.ts'
 */
import { withPiece } from './text-piece.js';

/** Kinds of events to ask for in `hello`, since clients of version 0.2.0 don't know them. */
export const knownEvents = ['compaction', 'output'];

/** @type {Conversation} */
export const emptyConversation = {
  messages: new Map(),
  of: undefined,
  position: 0,
  preview: undefined,
  run: undefined,
  endedRun: undefined,
  queueMode: undefined,
  children: [],
  tasks: [],
  isLoaded: false,
  connection: 'connecting',
};

const nothingGoesOn = { run: undefined, preview: undefined };
const openStates = new Set(['held', 'waiting', 'taken', 'delivering']);
/** This many of the last items are reread after a pause, because their states may have changed. */
const readAgain = 50;

/**
 * Returns where a new connection starts to read: before every item whose state may have changed since.
 * @param {Conversation} state
 */
export function resumeFrom(state) {
  const open = [...state.messages.values()].flatMap((message) =>
    message.position !== undefined && openStates.has(message.state) ? [message.position] : [],
  );
  const after = Math.min(state.position - readAgain, ...open.map((position) => position - 1));
  return { after: Math.max(0, after), of: state.of };
}

/** @type {Step<ConversationInput>} */
export function reduce(state, input) {
  switch (input.kind) {
    case 'connection':
      // The next connection reports current activity again.
      return { ...state, connection: input.state, ...(input.state === 'open' ? {} : nothingGoesOn) };
    case 'unsent':
      if (state.messages.has(input.frame.id)) return state;
      return putMessage(state, {
        id: input.frame.id,
        author: { kind: 'person', name: 'you' },
        text: input.frame.text,
        files: input.frame.attachments?.map(({ name }) => name),
        state: 'sending',
        at: input.at,
        ...(state.isLoaded && { after: state.position }),
      });
    case 'edited':
      return changeMessage(state, input.id, { text: input.text });
    case 'preview-settled':
      return state.run === undefined ? { ...state, preview: undefined } : state;
    case 'frame':
      return onFrame(state, input.frame);
    default:
      return state;
  }
}

/**
 * Returns what to say about the run besides its calls and its answer: `{ kind, text, progress? }`, each kind once.
 * `progress` is the share that is done.
 * @param {Pick<Conversation, 'run'>} state
 */
export function notesOf({ run }) {
  if (run === undefined) return [];
  const { wasSteered, waitsFor, summary } = run;
  return [
    ...(summary ? [{ kind: 'summary', text: summaryWords[summary.state], ...progressOf(summary) }] : []),
    ...(wasSteered ? [{ kind: 'steered', text: 'Parley has read your new message' }] : []),
    ...(waitsFor ? [{ kind: 'waits', text: `waiting for ${waitsFor}` }] : []),
  ];
}

const summaryWords = {
  started: 'Parley is summarizing earlier messages',
  done: 'Parley has summarized earlier messages',
  failed: "Parley couldn't summarize earlier messages",
};

/** @param {NonNullable<ClientRun['summary']>} summary */
function progressOf({ state, progress }) {
  return state === 'started' && progress > 0 ? { progress } : {};
}

/**
 * Returns the messages, oldest first; those without a place in the timeline come last, in order of arrival.
 * @param {Conversation} state
 */
export function messagesInOrder(state) {
  return [...state.messages.values()].sort((a, b) => placeOf(a) - placeOf(b) || 0);
}

/**
 * Returns the messages in order with the sub-agents and tasks among them, each after what the timeline contained when it
 * was made. Its place never changes. What works on a subtask, and a task of it, is shown with the task that it is part of.
 * @param {Conversation} state
 * @returns {readonly Entry[]}
 */
export function entriesInOrder(state) {
  const messages = messagesInOrder(state);
  const placed = messages.filter(({ position }) => position !== undefined);
  /** @param {{ readonly createdAt: number }} made */
  const behind = (made) => placed.findLast(({ at }) => at <= made.createdAt)?.position ?? 0;
  const made = [
    ...ownChildren(state).map((child) => ({ at: child.createdAt, child, place: behind(child) + 0.25 })),
    ...outerTasks(state).map((task) => ({ at: task.createdAt, task, place: behind(task) + 0.25 })),
  ].sort((a, b) => a.at - b.at);
  /** @type {(Entry & { readonly place: number })[]} */
  const entries = [
    ...messages.map((message) => ({ at: message.at, message, place: placeOf(message) })),
    ...made,
  ];
  return entries.sort((a, b) => a.place - b.place || 0);
}

/**
 * Returns the sub-agents without those that work on subtasks, and without all that these have spawned.
 * @param {Pick<Conversation, 'children'>} state
 */
export function ownChildren({ children }) {
  const ofTasks = new Set(children.filter((child) => child.isPeer).map(({ id }) => id));
  // Parents come before their children.
  for (const { id, parentId } of children)
    if (parentId !== undefined && ofTasks.has(parentId)) ofTasks.add(id);
  return children.filter(({ id }) => !ofTasks.has(id));
}

/**
 * Returns the tasks without those that a subtask of another one has become.
 * @param {Pick<Conversation, 'tasks'>} state
 */
function outerTasks({ tasks }) {
  const known = new Set(tasks.map(({ id }) => id));
  return tasks.filter(({ parent }) => parent === undefined || !known.has(parent.taskId));
}

/** States of messages that never get their own place: they stay where they were sent, a command before its answer. */
const placeless = new Set(['command', 'told', 'refused', 'ignored', 'failed', 'duplicate']);

/** @param {ClientMessage} message */
function placeOf(message) {
  if (message.position !== undefined) return message.position;
  const isKnown = placeless.has(message.state) && message.after !== undefined;
  return isKnown ? message.after + 0.5 : Number.POSITIVE_INFINITY;
}

/**
 * Returns the position before the message, which is unknown until the timeline is loaded.
 * @param {Conversation} state
 * @param {ClientMessage} message
 */
function sentAfter(state, message) {
  return message.after ?? (state.isLoaded ? state.position : undefined);
}

/**
 * Returns the id under which a failed message is sent once more, always the same one, so that two presses or two tabs
 * start one run. Undefined if it can't be sent from the client's `channel`, or has been.
 * @param {Conversation} state
 * @param {ClientMessage} message
 * @param {string} channel
 */
export function retryIdOf(state, message, channel) {
  const { id, state: outcome, position, files } = message;
  if (outcome !== 'failed' || message.channel !== channel || position === undefined || files !== undefined)
    return undefined;
  const retryId = nextUuid(id);
  return state.messages.has(retryId) ? undefined : retryId;
}

/**
 * Returns the UUID with its last 12 hexadecimal digits counted up; version and variant stay.
 * @param {string} id
 */
function nextUuid(id) {
  const tail = (Number.parseInt(id.slice(24), 16) + 1) % 2 ** 48;
  return `${id.slice(0, 24)}${tail.toString(16).padStart(12, '0')}`;
}

/**
 * True while the agent is working in this conversation, as far as the page knows.
 * @param {Conversation} state
 */
export function isWorking(state) {
  if (state.run !== undefined) return true;
  return [...state.messages.values()].some((message) => message.state === 'taken');
}

/** @type {Step<Frame>} */
function onFrame(state, frame) {
  switch (frame.type) {
    case 'snapshot':
      return onSnapshot(state, frame);
    case 'ack':
      return onAck(state, frame);
    case 'items':
      return onItems(sessionNow(state, frame.of), frame.items);
    case 'event':
      return onEvent(state, frame.event);
    case 'standing':
      return onStanding(state, frame);
    case 'preview':
      return { ...state, preview: { text: frame.text, spans: frame.spans } };
    case 'message':
      return onMessage(state, frame);
    case 'edited':
      // An edit removes the buttons.
      return changeMessage(state, frame.messageId, {
        text: frame.text,
        spans: frame.spans,
        buttons: undefined,
      });
    case 'deleted':
      return removeMessage(state, frame.messageId);
    case 'problem':
      return onProblem(state, frame);
    default:
      return state;
  }
}

/** @type {Step<Pick<Frame<'standing'>, 'run' | 'queueMode' | 'children' | 'tasks'>>} */
function onStanding(state, { run, queueMode, children = [], tasks = [] }) {
  return { ...state, run: run && storedRun(state, run), queueMode, children, tasks };
}

/** @type {Step<Frame<'snapshot'>>} */
function onSnapshot(before, frame) {
  const { of, after, items, draft } = frame;
  const state = sessionNow(before, of);
  const reaches = state.position >= after;
  const messages = [...state.messages].filter(
    ([, { position }]) => position === undefined || (reaches && position <= after),
  );
  const read = onItems({ ...state, messages: new Map(messages), position: after }, items);
  const preview =
    draft && draft.chat !== '' ? { text: draft.chat, spans: [], runId: draft.runId } : undefined;
  return { ...onStanding(read, frame), preview };
}

/** For these, the message that asked shows the decision. */
const decided = new Set(['approved', 'denied']);

/** @type {Step<Frame<'ack'>>} */
function onAck(state, frame) {
  if (frame.text !== undefined && !decided.has(frame.reason ?? ''))
    return onTold(state, frame.id, frame.text);
  const message = state.messages.get(frame.id);
  // Once the timeline has the message, its state is more recent.
  if (message === undefined || message.position !== undefined) return state;
  const after = sentAfter(state, message);
  return changeMessage(state, frame.id, { state: frame.state, reason: frame.reason, after });
}

/**
 * Shows the answer to a press that decided nothing, below the messages so far.
 * @type {(state: Conversation, id: string, text: string) => Conversation}
 */
function onTold(state, id, text) {
  if (state.messages.has(id)) return state;
  const at = Math.max(0, ...[...state.messages.values()].map((message) => message.at));
  return putMessage(state, {
    id,
    author: { kind: 'notice' },
    text,
    state: 'told',
    at,
    after: state.position,
  });
}

/** @type {Step<Frame<'problem'>>} */
function onProblem(state, { id = '', message: problem, retry }) {
  const message = state.messages.get(id);
  if (message === undefined || retry) return state;
  return changeMessage(state, id, { state: 'failed', problem, after: sentAfter(state, message) });
}

/**
 * Switches to the given session: drops all that was read of another one; unsent messages move to the new one.
 * @type {Step<string | undefined>}
 */
function sessionNow(state, of) {
  if (state.of === undefined || state.of === of) return { ...state, of };
  const messages = [...state.messages].filter(([, message]) => message.state === 'sending');
  return { ...state, of, messages: new Map(messages), position: 0, isLoaded: false, ...nothingGoesOn };
}

/** @type {Step<readonly TimelineItem[]>} */
function onItems(state, items) {
  const messages = new Map(state.messages);
  let { position, preview } = state;
  for (const item of items) {
    const known = messages.get(item.messageId);
    if (item.author.kind === 'agent' && known === undefined) preview = undefined;
    messages.set(item.messageId, {
      id: item.messageId,
      author: item.author,
      text: item.text,
      spans: item.spans ?? (known?.text === item.text ? known.spans : undefined),
      buttons: item.buttons,
      state: item.state,
      at: item.at,
      position: item.position,
      channel: item.channel,
      ...(item.reason !== undefined && { reason: item.reason }),
      ...(item.replyTo !== undefined && { replyTo: item.replyTo }),
      ...(item.files !== undefined && { files: item.files }),
      ...(item.file !== undefined && { file: item.file }),
      ...(item.steps !== undefined && { steps: item.steps }),
      ...(item.markdown !== undefined && { markdown: item.markdown }),
    });
    position = Math.max(position, item.position);
  }
  if (!state.isLoaded) placeUnsent(messages, position);
  return { ...state, messages, position, preview, isLoaded: true };
}

/**
 * Places messages that an earlier page left unsent, after all stored ones.
 * @param {Map<string, ClientMessage>} messages
 * @param {number} position
 */
function placeUnsent(messages, position) {
  for (const [id, message] of messages)
    if (message.position === undefined) messages.set(id, { ...message, after: position });
}

/** @type {Step<Frame<'message'>>} */
function onMessage(state, frame) {
  const known = state.messages.get(frame.messageId);
  const next = putMessage(state, {
    author: { kind: 'agent' },
    state: 'answered',
    at: frame.at,
    ...known,
    id: frame.messageId,
    text: frame.text,
    spans: frame.spans,
    ...(frame.file !== undefined && { file: frame.file }),
  });
  return { ...next, preview: undefined };
}

/** @type {Step<FeedEvent>} */
function onEvent(state, event) {
  switch (event.kind) {
    case 'run':
      return state.endedRun === event.runId && event.state !== 'started' ? state : onRun(state, event);
    case 'text':
      return state.endedRun === event.runId ? state : onText(state, event);
    case 'parked':
    case 'tool':
    case 'output':
    case 'compaction':
      if (state.endedRun === event.runId) return state;
      return { ...state, run: withEvent(runOf(state, event.runId), event) };
    default:
      return state;
  }
}

/** @type {Step<Extract<FeedEvent, { kind: 'text' }>>} */
function onText(state, event) {
  const text = event.of === 'chat' ? withPiece(state.preview?.text ?? '', event) : undefined;
  if (text === undefined) return state;
  return { ...state, preview: text === '' ? undefined : { text, spans: [], runId: event.runId } };
}

/** @type {Step<RunEvent<'run'>>} */
function onRun(state, { runId, state: step }) {
  if (step === 'ended') return onRunEnd(state, runId);
  const run = runOf(state, runId);
  const wasSteered = run.wasSteered || step === 'steered';
  return { ...state, endedRun: undefined, run: { ...run, wasSteered, waitsFor: undefined } };
}

/** @type {(state: Conversation, runId: string) => Conversation} */
function onRunEnd(state, runId) {
  // The next run may have begun elsewhere before this end was heard of.
  const run = state.run?.id === runId ? undefined : state.run;
  // Its text may come, or come again, behind its stored answer.
  const preview = state.preview?.runId === runId ? undefined : state.preview;
  return { ...state, endedRun: runId, run, preview };
}

/** @type {(run: ClientRun, event: RunEvent) => ClientRun} */
function withEvent(run, event) {
  switch (event.kind) {
    case 'tool':
      return withTool(run, event);
    case 'output':
      return {
        ...run,
        tools: run.tools.map((tool) =>
          tool.callId === event.callId && tool.state === 'started' ? { ...tool, output: event.text } : tool,
        ),
      };
    case 'parked':
      return { ...run, waitsFor: event.reason };
    case 'compaction': {
      const known = event.state === 'started' ? (run.summary?.progress ?? 0) : 0;
      return { ...run, summary: { state: event.state, progress: event.progress ?? known } };
    }
    default:
      return run;
  }
}

/**
 * A call's end replaces its start, and a start that comes after it says nothing. 0.2.0 doesn't name the call.
 * @type {(run: ClientRun, event: RunEvent<'tool'>) => ClientRun}
 */
function withTool(run, { name, callId = name, state }) {
  const known = run.tools.findIndex((tool) => tool.callId === callId);
  if (known === -1) return { ...run, tools: [...run.tools, { callId, name, state }] };
  return state === 'started' ? run : { ...run, tools: run.tools.with(known, { callId, name, state }) };
}

/**
 * The stored run replaces what events reported of calls that haven't ended; facts that aren't stored are kept.
 * @type {(state: Conversation, stored: NonNullable<Frame<'standing'>['run']>) => ClientRun}
 */
function storedRun(state, { runId, tools, callIds = tools, waitsFor }) {
  const run = runOf(state, runId);
  const kept = run.tools.filter((tool) => tool.state !== 'started' || callIds.includes(tool.callId));
  const missing = callIds
    .map((callId, index) => ({ callId, name: tools[index] ?? '', state: /** @type {const} */ ('started') }))
    .filter(({ callId }) => !kept.some((tool) => tool.callId === callId));
  return { ...run, tools: [...kept, ...missing], waitsFor };
}

/** @type {(state: Conversation, id: string) => ClientRun} */
function runOf(state, id) {
  return state.run?.id === id ? state.run : { id, tools: [], wasSteered: false };
}

/** @type {Step<ClientMessage>} */
function putMessage(state, message) {
  return { ...state, messages: new Map(state.messages).set(message.id, message) };
}

/** @type {(state: Conversation, id: string, change: Partial<ClientMessage>) => Conversation} */
function changeMessage(state, id, change) {
  const message = state.messages.get(id);
  return message === undefined ? state : putMessage(state, { ...message, ...change });
}

/** @type {Step<string>} */
function removeMessage(state, id) {
  const messages = new Map(state.messages);
  messages.delete(id);
  return { ...state, messages };
}

/** Connects state, socket and view. The state is one value; every event produces the next one and shows it. */
import { emptyConversation, knownEvents, reduce, resumeFrom } from '/client/conversation.js';
import { call, fetchStatus, signOut } from '/page/api.js';
import { asTextFile, attachmentsOf, canSend, createAttachments, maxTextLength } from '/page/attachments.js';
import { ChatView } from '/page/chat-view.js';
import { commandsFor, commandText } from '/page/command-menu.js';
import { createConnection } from '/page/connection.js';
import { createOutbox } from '/page/outbox.js';
import { closePanelsOnEscape } from '/page/panels.js';
import { randomId } from '/page/random-id.js';
import { h, render } from '/vendor/preact.js';

/** How soon the page shows, for example, that the database is unreachable or back. */
const statusEveryMs = 5_000;
/** How long the preview stays after a run has ended, while its last text may still be on its way. */
const settleMs = 1500;
const nearEndPx = 80;
/** Frames that say what has been stored: a question may have been decided in the conversation. */
const storedFrames = new Set(['ack', 'items', 'edited']);
/** How soon after such a frame open questions are read again, so that a burst of them causes one request. */
const questionsAfterMs = 100;

/** Runs until the page is left or reloaded. */
export function startChat(root, firstStatus) {
  const outbox = createOutbox(localStorage);
  const page = createPage(root, firstStatus);
  for (const entry of outbox.list()) {
    if (entry.frame.type === 'send') page.dispatch({ kind: 'unsent', ...entry });
  }
  const refreshQuestions = createQuestionRefresh(page);
  const connection = createConnection({
    url: `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/channels/web/chat`,
    conversation: 'main',
    events: knownEvents,
    outbox,
    resumeFrom: () => resumeFrom(page.state().conversation),
    onFrame: (frame) => {
      page.dispatch({ kind: 'frame', frame });
      if (storedFrames.has(frame.type)) refreshQuestions();
    },
    onState: (state) => {
      page.dispatch({ kind: 'connection', state });
      if (state !== 'connecting') refreshStatus(page);
    },
  });
  closePanelsOnEscape();
  setInterval(() => refreshStatus(page), statusEveryMs);
  // Without the commands there is no menu; /help lists them too.
  call('commands').then(
    ({ commands }) => page.update({ commands }),
    () => undefined,
  );
  page.setActions({ ...writingActions(page, connection), ...frameActions(page, connection, outbox) });
  focusComposer();
}

/** Keeps the state and shows it, at most once per frame. */
function createPage(root, status) {
  let state = {
    conversation: emptyConversation,
    status,
    notices: [],
    questions: [],
    /** Results of the owner's answers and of a sign-out: { id, text }, one per question, until dismissed. */
    results: [],
    draft: '',
    files: [],
    /** What became of a text that is too long for a message. */
    pasteHint: undefined,
    /** The message being edited, and the draft to restore afterwards: { id, draft }. */
    editing: undefined,
    commands: [],
    /** The selected line of the command menu; undefined while the menu is closed. */
    menuAt: 0,
    isAtEnd: true,
    showsLanes: false,
    /** This browser is being signed out. */
    isLeaving: false,
  };
  let actions = {};
  let isScheduled = false;

  const show = () => {
    isScheduled = false;
    render(h(ChatView, { ...state, actions }), root);
    if (state.isAtEnd) scrollToEnd();
  };
  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    // Not an animation frame, because a page in the background must keep up too.
    setTimeout(show, 16);
  };
  const update = (change) => {
    state = { ...state, ...change };
    schedule();
  };
  const dispatch = (input) => {
    update({ conversation: reduce(state.conversation, input) });
    const { type, event, run } = input.frame ?? {};
    const isEnd =
      (event?.kind === 'run' && event.state === 'ended') || (type === 'standing' && run === undefined);
    if (isEnd) setTimeout(() => dispatch({ kind: 'preview-settled' }), settleMs);
  };
  return {
    state: () => state,
    update,
    dispatch,
    setActions: (next) => {
      actions = next;
      show();
    },
  };
}

/** Actions of the composer and of a waiting message. */
function writingActions(page, connection) {
  const submit = createSubmit(page, connection);
  const send = () => {
    const { draft, files, editing } = page.state();
    if (!canSend(page.state())) return;
    if (editing !== undefined) {
      submit({ type: 'edit', message: editing.id, text: draft });
      page.dispatch({ kind: 'edited', id: editing.id, text: draft });
      endEdit();
    } else {
      const named = attachmentsOf(files);
      submit({ type: 'send', text: draft, ...(named && { attachments: named }) });
      page.update({ draft: '', files: [], pasteHint: undefined });
    }
    page.update({ isAtEnd: true });
    focusComposer();
  };
  const endEdit = () =>
    page.update({ editing: undefined, draft: page.state().editing?.draft ?? '', pasteHint: undefined });
  const menu = createMenu(page);
  const attachments = createAttachments(page);
  const { typed, pasted } = createInput(page, attachments);
  return {
    send,
    endEdit,
    stop: () => submit({ type: 'stop' }),
    press: (message, button) => submit({ type: 'press', message: message.id, button: button.id }),
    tryAgain: (message, id) => submit({ type: 'send', id, text: message.text }),
    cancelMessage: (message) => submit({ type: 'delete', message: message.id }),
    startEdit: (message) => {
      const { editing, draft } = page.state();
      page.update({ editing: { id: message.id, draft: editing?.draft ?? draft }, draft: message.text });
      focusComposer();
    },
    typed,
    pasted,
    pickCommand: menu.pick,
    addFiles: attachments.add,
    removeFile: (key) => {
      attachments.remove(key);
      page.update({ pasteHint: undefined });
    },
    keyed: (event) => {
      if (menu.keyed(event)) return event.preventDefault();
      if (event.key === 'Escape' && page.state().editing !== undefined) {
        event.preventDefault();
        return endEdit();
      }
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing || isTouch()) return;
      event.preventDefault();
      send();
    },
  };
}

const attachedHint = "That text is too long for a message, so it's attached as a file: pasted-text.txt.";
const fullHint = 'That text is too long for a message. Remove a file, then paste it again to attach it.';
const editHint = 'A message can have at most 32,000 characters. Shorten it to save the edit.';

/** Takes what is typed and pasted. A text that is too long becomes a file instead of being cut. */
function createInput(page, attachments) {
  /** Returns false if there are too many files already. */
  const attach = (text) => {
    const isFull = attachments.isFull();
    if (!isFull) attachments.add([asTextFile(text)]);
    page.update({ pasteHint: isFull ? fullHint : attachedHint });
    return !isFull;
  };
  return {
    typed: (event) => {
      const draft = event.target.value;
      const isTooLong = draft.length > maxTextLength;
      const isEdit = page.state().editing !== undefined;
      // Without a paste, such as when text is dropped.
      const isAttached = isTooLong && !isEdit && attach(draft);
      if (isEdit) page.update({ pasteHint: isTooLong ? editHint : undefined });
      page.update({ draft: isAttached ? '' : draft, menuAt: 0 });
    },
    pasted: (event) => {
      // An edit only changes the text.
      if (page.state().editing !== undefined) return;
      const { files } = event.clipboardData;
      const text = event.clipboardData.getData('text/plain');
      const isTooLong = page.state().draft.length + text.length > maxTextLength;
      if (files.length === 0 && !isTooLong) return;
      event.preventDefault();
      if (files.length > 0) attachments.add(files);
      else attach(text);
    },
  };
}

/** The command menu. `keyed` returns true for a key that the menu handled. */
function createMenu(page) {
  const pick = (command) => {
    page.update({ draft: commandText(command), menuAt: undefined });
    focusComposer();
  };
  return {
    pick,
    keyed: ({ key, shiftKey, isComposing }) => {
      const { draft, commands, menuAt } = page.state();
      const items = menuAt === undefined ? [] : commandsFor(draft, commands);
      const chosen = items[menuAt];
      if (chosen === undefined || isComposing) return false;
      if (key === 'ArrowDown' || key === 'ArrowUp') {
        const step = key === 'ArrowDown' ? 1 : items.length - 1;
        page.update({ menuAt: (menuAt + step) % items.length });
        return true;
      }
      if (key === 'Escape') {
        page.update({ menuAt: undefined });
        return true;
      }
      const isWhole = draft === `/${chosen.name}`;
      if ((key === 'Tab' && !shiftKey) || (key === 'Enter' && !isWhole)) {
        pick(chosen);
        return true;
      }
      return false;
    },
  };
}

/** Stores every frame with an effect in the browser before sending it. */
function createSubmit(page, connection) {
  let order = 0;
  return (frame) => {
    order += 1;
    const entry = { frame: { id: randomId(), ...frame }, at: Date.now(), order };
    connection.submit(entry);
    if (frame.type === 'send') page.dispatch({ kind: 'unsent', ...entry });
  };
}

/** The request may have arrived even though its answer didn't. */
const unheard = 'Your answer may not have reached Parley. If the question is still here, please try again.';

const stillHere =
  "This browser is still signed in because Parley didn't respond. Please try again, or sign it out from another browser.";

const withoutResult = (page, id) => page.state().results.filter((result) => result.id !== id);

/** Actions around the conversation: scrolling, lanes, notices and sign-out. */
function frameActions(page, connection, outbox) {
  let lastTop = 0;
  return {
    toEnd: () => page.update({ isAtEnd: true }),
    scrolled: (event) => {
      const { scrollHeight, scrollTop, clientHeight } = event.target;
      const isNear = scrollHeight - scrollTop - clientHeight < nearEndPx;
      // The event of an earlier scroll can come after the content has grown; only scrolling up leaves the end.
      const isAtEnd = isNear || (page.state().isAtEnd && scrollTop >= lastTop);
      lastTop = scrollTop;
      if (isAtEnd !== page.state().isAtEnd) page.update({ isAtEnd });
    },
    imageShown: () => page.state().isAtEnd && scrollToEnd(),
    openLanes: () => {
      // The dialog returns the focus to the element that had it.
      const panel = document.querySelector('details.status');
      panel.open = false;
      panel.querySelector('summary').focus();
      page.update({ showsLanes: true });
    },
    closeLanes: () => page.update({ showsLanes: false }),
    dismissNotice: async (id) => {
      await call('notices/dismiss', { id }).catch(() => undefined);
      await refreshStatus(page);
    },
    answerQuestion: async (id, verdict) => {
      const { text } = await call('notices/answer', { id, verdict }).catch(() => ({ text: unheard }));
      // The question disappears with the next refresh, so its result is shown in its place.
      page.update({ results: [...withoutResult(page, id), { id, text }] });
      await refreshStatus(page);
    },
    forgetResult: (id) => page.update({ results: withoutResult(page, id) }),
    signOut: async () => {
      page.update({ isLeaving: true });
      if (!(await signOut())) {
        const results = [...withoutResult(page, 'sign-out'), { id: 'sign-out', text: stillHere }];
        return page.update({ isLeaving: false, results });
      }
      connection.close();
      outbox.clear();
      location.reload();
    },
  };
}

async function refreshStatus(page) {
  try {
    const status = await fetchStatus();
    // The session ended elsewhere; unsent messages are kept for the next sign-in.
    if (status === undefined) return page.state().isLeaving ? undefined : location.reload();
    page.update({ status });
    await refreshNotices(page);
  } catch {
    // Parley is unreachable; the connection line says so.
  }
}

async function refreshNotices(page) {
  const { notices, questions } = await call('notices');
  page.update({ notices, questions });
}

/** Returns a function that reads the open questions again soon, if any are shown. */
function createQuestionRefresh(page) {
  let isDue = false;
  return () => {
    if (isDue || page.state().questions.length === 0) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      refreshNotices(page).catch(() => undefined);
    }, questionsAfterMs);
  };
}

function isTouch() {
  return matchMedia('(pointer: coarse)').matches;
}

function focusComposer() {
  document.getElementById('composer')?.focus();
}

function scrollToEnd() {
  const scroll = document.getElementById('scroll');
  if (scroll !== null) scroll.scrollTop = scroll.scrollHeight;
}

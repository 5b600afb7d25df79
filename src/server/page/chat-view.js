import { entriesInOrder, isWorking, notesOf, retryIdOf } from '/client/conversation.js';
import { canSend, FileButton, FileList } from '/page/attachments.js';
import { ChildLine, ChildTree } from '/page/children-view.js';
import { CommandMenu, commandsFor, menuAttributes } from '/page/command-menu.js';
import { CopyButton } from '/page/copy-button.js';
import { FileView } from '/page/file-view.js';
import { LanesView } from '/page/lanes-view.js';
import { NoticesView } from '/page/notices-view.js';
import { parleyCommand } from '/page/own-command.js';
import { RichText } from '/page/rich-text.js';
import { connectionWords, StatusView } from '/page/status-view.js';
import { TaskCard } from '/page/task-view.js';
import { WhyButton } from '/page/why-view.js';
import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);

/** The complete signed-in page. `actions` are what the person can do; the rest is state. */
export function ChatView(state) {
  const { conversation, status, notices, questions, results, isAtEnd, showsLanes, actions } = state;
  // Unknown without a connection.
  const working = conversation.connection === 'open' && isWorking(conversation);
  return html`<div class="shell">
    <header>
      <img src="/page/icon.svg" alt="" width="28" height="28" />
      <h1 class="brand">Parley</h1>
      <${StatusView} status=${status} connection=${conversation.connection} onLanes=${actions.openLanes}
        onSignOut=${actions.signOut} />
    </header>
    <${NoticesView} problems=${status?.problems ?? []} notices=${notices}
      questions=${questions} results=${results} onDismiss=${actions.dismissNotice}
      onAnswer=${actions.answerQuestion} onForget=${actions.forgetResult} />
    <${ChildTree} nodes=${conversation.children} />
    <main class="scroll" id="scroll" tabindex="0" aria-label="Conversation" onScroll=${actions.scrolled}>
      <div class="messages" role="log" aria-live="polite">
        <${Messages} conversation=${conversation} status=${status} actions=${actions} />
        <${Activity} conversation=${conversation} working=${working} />
      </div>
    </main>
    <footer>
      ${!isAtEnd && html`<button class="jump" onClick=${actions.toEnd} aria-label="Jump to the newest message">↓</button>`}
      <${Composer} ...${state} working=${working} />
    </footer>
    ${showsLanes && html`<${LanesView} onClose=${actions.closeLanes} />`}
  </div>`;
}

function Messages({ conversation, status, actions }) {
  const entries = entriesInOrder(conversation);
  if (entries.length === 0) return conversation.isLoaded && html`<${Greeting} status=${status} />`;
  let day = '';
  return entries.map((entry) => {
    const itsDay = dayOf(entry.at);
    const isNewDay = itsDay !== day;
    day = itsDay;
    return html`${isNewDay && html`<div class="day" key=${`day-${itsDay}`}>${itsDay}</div>`}
      <${EntryView} key=${`entry-${entryIdOf(entry)}`} ...${{ entry, conversation, actions }} />`;
  });
}

function entryIdOf({ message, child, task }) {
  if (child !== undefined) return `child-${child.id}`;
  return task === undefined ? message.id : `task-${task.id}`;
}

function EntryView({ entry: { message, child, task }, conversation, actions }) {
  if (child !== undefined) return html`<${ChildLine} child=${child} />`;
  if (task !== undefined) return html`<${TaskCard} task=${task} tasks=${conversation.tasks} />`;
  return html`<${Message} message=${message} quoted=${conversation.messages.get(message.replyTo)}
    retryId=${retryIdOf(conversation, message, 'web')} actions=${actions} />`;
}

function Greeting({ status }) {
  const networks =
    status?.channels.filter(({ id, state }) => state !== 'off' && !localChannels.has(id)) ?? [];
  const isSetUp = status === undefined || !status.model.isDemo || networks.length > 0;
  return html`<div class="greeting">
    <img src="/page/icon.svg" alt="" width="64" height="64" />
    <h2>What's on your mind?</h2>
    <p>Parley reads text and photos, sees other files by name, works on files in its own folder, and can delegate to sub-agents. Keep
      writing while it works; <code>/</code> shows the commands.</p>
    <p><code>SOUL.md</code>, <code>AGENTS.md</code> and other files in its workspace shape how it behaves:${' '}
      <code>${parleyCommand} agent init</code> creates them.</p>
    ${!isSetUp && html`<${SetUp} />`}
  </div>`;
}

const localChannels = new Set(['web', 'terminal']);
const setUpCommand = `${parleyCommand} onboard`;

function SetUp() {
  return html`<div class="set-up card">
    <p>A scripted demo model answers for now, and no network is connected. To set up both, run this in Parley's folder:</p>
    <div class="code-block"><pre tabindex="0"><code>${setUpCommand}</code></pre>
      <${CopyButton} text=${setUpCommand} what="command" /></div>
  </div>`;
}

/** Longest quotation that is shown above an answer; the style cuts it to one line. */
const maxQuoted = 200;

function Message({ message, quoted, retryId, actions }) {
  if (message.author.kind === 'notice')
    return html`<div class="notice" data-id=${message.id}>${message.text}
      <${Buttons} message=${message} actions=${actions} /></div>`;
  if (message.author.kind === 'agent') {
    return html`<article class="agent" data-id=${message.id}>
      <${Steps} steps=${message.steps} />
      ${quoted && html`<blockquote class="quoted" aria-label="In reply to">${quoted.text.slice(0, maxQuoted).toWellFormed()}</blockquote>`}
      ${message.file && html`<${FileView} id=${message.id} file=${message.file} onShown=${actions.imageShown} />`}
      ${
        message.text !== '' &&
        html`<${RichText} text=${message.text} spans=${message.spans} />
          <div class="tools"><${CopyButton} text=${message.markdown ?? message.text} what="answer" /></div>`
      }
    </article>`;
  }
  return html`<article class="own" data-id=${message.id} data-state=${message.state}>
    <div class="bubble">${message.text}${message.files?.map((name) => html`<div class="file">📎 ${name}</div>`)}</div>
    <${OwnState} message=${message} retryId=${retryId} actions=${actions} />
  </article>`;
}

/** The choices under a question. The message itself shows the result of a press. */
function Buttons({ message, actions }) {
  if (message.buttons === undefined) return null;
  return html`<div class="choices">
    ${message.buttons.map(
      (button) =>
        html`<button class="choice" key=${button.id} onClick=${() => actions.press(message, button)}>${button.label}</button>`,
    )}
  </div>`;
}

const stateWords = {
  sending: 'sending…',
  accepted: 'received',
  duplicate: 'received',
  held: 'received',
  command: 'command',
  noted: 'noted',
  waiting: 'waiting',
  taken: 'being answered',
  delivering: 'answered, sending…',
  answered: 'answered',
  silent: 'read, no answer needed',
  merged: 'answered with another message',
  cancelled: 'cancelled',
  ignored: 'ignored',
  refused: 'refused',
  failed: 'failed',
};

const endedStates = new Set(['answered', 'silent', 'merged', 'cancelled', 'ignored', 'refused', 'failed']);

function OwnState({ message, retryId, actions }) {
  const why = message.problem ?? (message.state === 'command' ? undefined : message.reason);
  const text = `${stateWords[message.state] ?? message.state}${why ? `: ${why}` : ''}`;
  return html`<div class="state ${message.state}">
    ${message.state === 'waiting' && html`<${WaitingActions} message=${message} actions=${actions} />`}
    ${retryId && html`<button class="link" onClick=${() => actions.tryAgain(message, retryId)}>Try again</button>`}
    ${
      endedStates.has(message.state)
        ? html`<${WhyButton} id=${message.id} words=${text} title="Show what happened to this message" />`
        : html`<span>${text}</span>`
    }
    <time title=${new Date(message.at).toLocaleString()}>${timeOf(message.at)}</time>
  </div>`;
}

function WaitingActions({ message, actions }) {
  return html`<button class="link" onClick=${() => actions.startEdit(message)}>edit</button>
    <button class="link" onClick=${() => actions.cancelMessage(message)}>cancel</button>`;
}

/** Shows the current activity: one line per tool, then the answer so far or a working indicator. */
function Activity({ conversation, working }) {
  const { run, preview } = conversation;
  if (!working && preview === undefined) return null;
  return html`<section class="activity" aria-live="off">
    ${run?.tools.map((tool, i) => html`<${ToolLine} key=${i} tool=${tool} />`)}
    ${notesOf(conversation).map(
      ({ kind, text, progress }) => html`<div class=${kind} key=${kind} role="status">
      ${text}${progress !== undefined && html` <span aria-hidden="true">(${Math.round(progress * 100)} %)</span>`}</div>`,
    )}
    ${
      preview === undefined
        ? !run?.waitsFor &&
          html`<div class="thinking" role="status" aria-label="working"><i></i><i></i><i></i></div>`
        : html`<article class="agent preview"><${RichText} text=${preview.text} spans=${preview.spans} /></article>`
    }
  </section>`;
}

/** The finished tool calls of an answer, collapsed. */
function Steps({ steps = [] }) {
  if (steps.length === 0) return null;
  const failed = steps.filter(({ state }) => state === 'failed').length;
  const count = `${steps.length} ${steps.length === 1 ? 'step' : 'steps'}`;
  return html`<details class="steps">
    <summary>${count}${failed > 0 && `, ${failed} failed`}</summary>
    ${steps.map((tool, i) => html`<${ToolLine} key=${i} tool=${tool} />`)}
  </details>`;
}

const toolMarks = { started: '…', done: '✓', failed: '✕', skipped: '↷' };

function ToolLine({ tool }) {
  return html`<div class="tool ${tool.state}"><span class="mark">${toolMarks[tool.state]}</span>
    ${tool.name}${tool.state === 'skipped' && ' (skipped)'}</div>
    ${tool.output && html`<pre class="output" tabindex="0" aria-label="Output of ${tool.name}">${tool.output}</pre>`}`;
}

function Composer({ draft, files, pasteHint, editing, working, conversation, commands, menuAt, actions }) {
  const items = menuAt === undefined ? [] : commandsFor(draft, commands);
  const submit = (event) => {
    event.preventDefault();
    actions.send();
  };
  return html`<form class="composer" onSubmit=${submit}>
    <p class="hint" role="status">${pasteHint ?? hintOf(editing, working, conversation)}
      ${editing && html` <button type="button" class="link" onClick=${actions.endEdit}>Cancel edit</button>`}</p>
    <${CommandMenu} items=${items} at=${menuAt} onPick=${actions.pickCommand} />
    ${!editing && html`<${FileList} files=${files} onRemove=${actions.removeFile} />`}
    <div class="box">
      ${!editing && html`<${FileButton} onFiles=${actions.addFiles} />`}
      <textarea id="composer" ...${menuAttributes(items, menuAt)} rows="1" placeholder="Message Parley" aria-label="Message"
        enterkeyhint="send" value=${draft} onInput=${actions.typed} onPaste=${actions.pasted} onKeyDown=${actions.keyed}></textarea>
      ${working && html`<button type="button" class="stop" onClick=${actions.stop} aria-label="Stop"><${StopIcon} /></button>`}
      <button class="send" disabled=${!canSend({ draft, files, editing })} aria-label=${editing ? 'Save' : 'Send'}><${SendIcon} /></button>
    </div>
  </form>`;
}

/** What happens to a message that is sent now, by queue mode. */
const laterWords = {
  steer: 'It reads new messages before its next step.',
  'steer-backlog': 'It reads new messages before its next step.',
  followup: 'It answers new messages after this, one by one.',
  collect: 'It answers new messages after this, all together.',
  interrupt: 'A new message stops it and is answered instead.',
};

function hintOf(editing, working, { connection, isLoaded, queueMode }) {
  if (isLoaded && connection !== 'open') return connectionWords.lost;
  if (editing) return 'Editing a waiting message.';
  return working ? `Parley is working. ${laterWords[queueMode] ?? ''}` : '';
}

function StopIcon() {
  return html`<svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
    <rect x="5" y="5" width="10" height="10" rx="2" fill="currentColor" /></svg>`;
}

function SendIcon() {
  return html`<svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" fill="none" stroke="currentColor"
    stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><path d="M10 16V4M5 9l5-5 5 5" /></svg>`;
}

function timeOf(at) {
  return new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
}

function dayOf(at) {
  const day = new Date(at).toDateString();
  if (day === new Date().toDateString()) return 'Today';
  return new Date(at).toLocaleDateString([], { weekday: 'long', day: 'numeric', month: 'long' });
}

import { ChildLine, ChildTree } from '/page/children-view.js';
import { entriesInOrder, isWorking } from '/page/conversation.js';
import { NoticesView } from '/page/notices-view.js';
import { RichText } from '/page/rich-text.js';
import { StatusView } from '/page/status-view.js';
import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);

/** The whole signed-in page. `actions` are the person's choices; the rest is state. */
export function ChatView({ conversation, status, notices, questions, draft, editing, isAtEnd, actions }) {
  const working = isWorking(conversation);
  return html`<div class="shell">
    <header>
      <img src="/page/icon.svg" alt="" width="28" height="28" />
      <h1 class="brand">Parley</h1>
      <${StatusView} status=${status} connection=${conversation.connection} onSignOut=${actions.signOut} />
    </header>
    <${NoticesView} problems=${status?.problems ?? []} notices=${notices}
      questions=${questions} onDismiss=${actions.dismissNotice} onAnswer=${actions.answerQuestion} />
    <${ChildTree} nodes=${conversation.children} />
    <div class="scroll" id="scroll" onScroll=${actions.scrolled}>
      <main class="messages" role="log" aria-live="polite">
        <${Messages} conversation=${conversation} actions=${actions} />
        <${Activity} conversation=${conversation} working=${working} />
      </main>
    </div>
    <footer>
      ${!isAtEnd && html`<button class="jump" onClick=${actions.toEnd} aria-label="Jump to the newest message">↓</button>`}
      <${Composer} draft=${draft} editing=${editing} working=${working} actions=${actions} />
    </footer>
  </div>`;
}

function Messages({ conversation, actions }) {
  const entries = entriesInOrder(conversation);
  if (entries.length === 0) return conversation.isLoaded && html`<${Greeting} />`;
  let day = '';
  return entries.map((entry) => {
    const itsDay = dayOf(entry.at);
    const isNewDay = itsDay !== day;
    day = itsDay;
    return html`${isNewDay && html`<div class="day" key=${`day-${itsDay}`}>${itsDay}</div>`}
      ${
        entry.kind === 'child'
          ? html`<${ChildLine} key=${`child-${entry.child.id}`} child=${entry.child} />`
          : html`<${Message} key=${entry.message.id} message=${entry.message} actions=${actions} />`
      }`;
  });
}

function Greeting() {
  return html`<div class="greeting">
    <img src="/page/icon.svg" alt="" width="64" height="64" />
    <h2>What's on your mind?</h2>
    <p>Keep writing while Parley works; it reads new messages before its next step.
      <br /><code>/help</code> lists the commands.</p>
  </div>`;
}

function Message({ message, actions }) {
  if (message.author.kind === 'notice')
    return html`<div class="notice" data-id=${message.id}>${message.text}
      <${Buttons} message=${message} actions=${actions} /></div>`;
  if (message.author.kind === 'agent') {
    return html`<article class="agent" data-id=${message.id}>
      <${RichText} text=${message.text} spans=${message.spans} />
    </article>`;
  }
  return html`<article class="own" data-id=${message.id} data-state=${message.state}>
    <div class="bubble">${message.text}</div>
    <${OwnState} message=${message} actions=${actions} />
  </article>`;
}

/** Choices under a question. Whatever a press does, the message says it. */
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

function OwnState({ message, actions }) {
  const why = message.problem ?? (message.state === 'command' ? undefined : message.reason);
  const words = stateWords[message.state] ?? message.state;
  return html`<div class="state ${message.state}">
    ${message.state === 'waiting' && html`<${WaitingActions} message=${message} actions=${actions} />`}
    <span title=${new Date(message.at).toLocaleString()}>${words}${why && `: ${why}`}</span>
    <time>${timeOf(message.at)}</time>
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
    ${run?.wasSteered && html`<div class="steered">Parley has read your new message</div>`}
    ${run?.waitsFor && html`<div class="waits" role="status">waiting for ${run.waitsFor}</div>`}
    ${
      preview === undefined
        ? !run?.waitsFor &&
          html`<div class="thinking" role="status" aria-label="working"><i></i><i></i><i></i></div>`
        : html`<article class="agent preview"><${RichText} text=${preview.text} spans=${preview.spans} /></article>`
    }
  </section>`;
}

const toolMarks = { started: '…', done: '✓', failed: '✕', skipped: '↷' };

function ToolLine({ tool }) {
  return html`<div class="tool ${tool.state}"><span class="mark">${toolMarks[tool.state]}</span>
    ${tool.name}${tool.state === 'skipped' && ' (skipped)'}</div>`;
}

function Composer({ draft, editing, working, actions }) {
  const submit = (event) => {
    event.preventDefault();
    actions.send();
  };
  return html`<form class="composer" onSubmit=${submit}>
    <p class="hint" role="status">${hintOf(editing, working)}
      ${editing && html` <button type="button" class="link" onClick=${actions.endEdit}>Cancel edit</button>`}</p>
    <div class="box">
      <textarea id="composer" rows="1" maxlength="32000" placeholder="Message Parley" aria-label="Message"
        enterkeyhint="send" value=${draft} onInput=${actions.typed} onKeyDown=${actions.keyed}></textarea>
      ${working && html`<button type="button" class="stop" onClick=${actions.stop} aria-label="Stop"><${StopIcon} /></button>`}
      <button class="send" disabled=${draft.trim() === ''} aria-label=${editing ? 'Save' : 'Send'}><${SendIcon} /></button>
    </div>
  </form>`;
}

function hintOf(editing, working) {
  if (editing) return 'Editing a waiting message.';
  return working ? 'Parley is working. It reads new messages before its next step.' : '';
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

/**
 * The lanes and their waiting messages. The list is read while the dialog is open and the page is visible; each request
 * waits for a change at the server. The form for an edit replaces the list, so that no update can remove its text.
 */
import { durationText } from '/client/duration.js';
import { call } from '/page/api.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Minimum time between two reads, however much changes. */
const restMs = 1_000;
/** Pause after a failed read. */
const retryMs = 3_000;
/** Lease renewals aren't announced and ages grow, so a list with busy lanes is reread sooner than an idle one. */
const busyWaitMs = 5_000;
const idleWaitMs = 30_000;

const failed = "That didn't work. Please try again in a moment.";
const gone = "That message isn't waiting any more.";

export class LanesView extends Component {
  state = {
    lanes: undefined,
    next: undefined,
    /** Where the current page begins; undefined for the first. */
    after: undefined,
    problem: '',
    /** Result of the last change. */
    said: '',
    /** The message being reworded: { id, number, text }. */
    editing: undefined,
  };

  changing = Promise.resolve();

  componentDidMount() {
    this.dialog.showModal();
    this.read();
  }

  componentWillUnmount() {
    this.isClosed = true;
    this.reading?.abort();
    clearTimeout(this.timer);
  }

  /** Reads the current page; with a version, once something has changed since then. */
  async read(since) {
    clearTimeout(this.timer);
    this.reading?.abort();
    const reading = new AbortController();
    this.reading = reading;
    const isBusy = this.state.lanes?.some(({ state }) => state !== 'idle');
    const asked = { after: this.state.after, since, waitMs: isBusy ? busyWaitMs : idleWaitMs };
    try {
      const { lanes, next, version } = await call('lanes', asked, reading.signal);
      if (reading.signal.aborted) return;
      this.setState({ lanes, next, problem: '' });
      this.timer = setTimeout(() => this.readWhenSeen(version), restMs);
    } catch {
      if (reading.signal.aborted) return;
      this.setState({ problem: failed });
      this.timer = setTimeout(() => this.readWhenSeen(), retryMs);
    }
  }

  readWhenSeen(version) {
    if (this.isClosed) return;
    if (!document.hidden) return this.read(version);
    document.addEventListener('visibilitychange', () => this.readWhenSeen(version), { once: true });
  }

  turnTo(after) {
    this.setState({ after, lanes: undefined, said: '' }, () => this.read());
  }

  /** Makes a change once earlier ones are done, then rereads the list. */
  change(make) {
    this.changing = this.changing.then(async () => {
      try {
        this.setState({ said: await make(), problem: '' });
      } catch {
        this.setState({ said: '', problem: failed });
      }
      if (!this.isClosed) await this.read();
    });
    return this.changing;
  }

  /** Changes a message. Its buttons may then be gone or elsewhere, so the dialog takes the focus. */
  changeItem(name, input) {
    return this.change(async () => {
      const text = await resultOf(name, input);
      if (text !== undefined) this.setState({ editing: undefined });
      this.dialog?.focus();
      return text ?? gone;
    });
  }

  async startEdit({ id, number }) {
    const found = await call('queue/text', { id }).catch(() => undefined);
    this.setState(found === undefined ? { said: gone } : { editing: { id, number, ...found }, said: '' });
  }

  actions = {
    edit: (item) => this.startEdit(item),
    promote: ({ id }) => this.changeItem('queue/promote', { id }),
    cancel: ({ id }) => this.changeItem('queue/cancel', { id }),
    save: ({ id }, text) => this.changeItem('queue/edit', { id, text }),
    endEdit: () => this.setState({ editing: undefined }),
    setMode: (lane, mode) =>
      this.change(async () => {
        await call('lanes/mode', { lane: lane.key, mode });
        return `${nameOf(lane)}: the mode is now ${mode}.`;
      }),
  };

  render({ onClose }, { lanes, next, after, problem, said, editing }) {
    const keep = (dialog) => {
      this.dialog = dialog;
    };
    const onCancel = (event) => {
      if (editing === undefined) return;
      event.preventDefault();
      this.actions.endEdit();
    };
    return html`<dialog class="lanes card" ref=${keep} tabindex="-1" onClose=${onClose} onCancel=${onCancel}
      aria-labelledby="lanes-title">
      <div class="top">
        <div class="title"><h2 id="lanes-title">Lanes</h2>
          <form method="dialog"><button class="choice">Close</button></form></div>
        <p class="said" role="status">${said}</p>
        <p class="problem" role="alert">${problem}</p>
      </div>
      <p class="detail">Each conversation has a lane, in which its messages wait for their turn.</p>
      ${
        editing === undefined
          ? html`<${LaneList} lanes=${lanes} actions=${this.actions} />
            <${Pager} next=${next} after=${after} onTurn=${(to) => this.turnTo(to)} />`
          : html`<${Rewording} key=${editing.id} item=${editing} actions=${this.actions} />`
      }
    </dialog>`;
  }
}

/** Resolves with the result as text, or with `undefined` if there is no such message. Rejects on failure. */
async function resultOf(name, input) {
  try {
    return (await call(name, input)).text;
  } catch (error) {
    if (error.status === 404) return undefined;
    // It is no longer waiting, or this change isn't allowed.
    if (error.status === 409) return error.text;
    throw error;
  }
}

function LaneList({ lanes, actions }) {
  if (lanes === undefined) return html`<p class="detail">Loading…</p>`;
  if (lanes.length === 0) return html`<p class="detail">There are no conversations yet.</p>`;
  const busy = lanes.filter(({ state }) => state !== 'idle');
  const idle = lanes.filter(({ state }) => state === 'idle');
  const listOf = (title, shown) =>
    shown.length > 0 &&
    html`<h3>${title}</h3>
      <ul>${shown.map((lane) => html`<${Lane} key=${lane.key} lane=${lane} actions=${actions} />`)}</ul>`;
  return html`<div class="list">${listOf('Working or waiting', busy)}${listOf('Idle', idle)}</div>`;
}

function Pager({ next, after, onTurn }) {
  if (next === undefined && after === undefined) return null;
  return html`<div class="choices">
    ${after !== undefined && html`<button class="choice" onClick=${() => onTurn(undefined)}>First page</button>`}
    ${next !== undefined && html`<button class="choice" onClick=${() => onTurn(next)}>Next page</button>`}
  </div>`;
}

function Lane({ lane, actions }) {
  const { key, title, state, waiting, waitingCount } = lane;
  const more = waitingCount - waiting.length;
  return html`<li class="lane" data-lane=${key} data-state=${state}>
    <div class="head">
      <span class="dot ${state}"></span>
      <span class="name">${nameOf(lane)}</span>
      <${Mode} lane=${lane} onPick=${(mode) => actions.setMode(lane, mode)} />
    </div>
    <p class="detail">${stateText(lane)}, agent ${lane.agentId}</p>
    <${Ids} lane=${lane} />
    ${title !== undefined && html`<p class="detail">${key}</p>`}
    ${
      waiting.length > 0 &&
      html`<ol>${waiting.map(
        (item, index) =>
          html`<${Item} key=${item.id} ...${{ item, lane, actions }} isFirst=${index === 0} />`,
      )}</ol>`
    }
    ${more > 0 && html`<p class="detail">and ${more} more</p>`}
  </li>`;
}

/** Ids that `parley why` accepts. A process is shown by its number and the start of its name, its full id as a tooltip. */
function Ids({ lane: { run, holder } }) {
  if (run === undefined && holder === undefined) return null;
  const role = holder?.role === undefined ? '' : ` (${holder.role})`;
  return html`<p class="detail">
    ${run !== undefined && html`<span>run ${run.id}</span>`}
    ${holder !== undefined && html`<span title=${holder.id}>process ${shortProcess(holder.id)}${role}</span>`}
  </p>`;
}

function shortProcess(id) {
  return /[^/]*$/.exec(id)[0].split('-', 2).join('-');
}

const modes = ['steer', 'steer-backlog', 'followup', 'collect', 'interrupt'];

/** The mode of sub-agents and of Parley's own work is fixed. */
function Mode({ lane, onPick }) {
  if (lane.class !== 'main') return html`<span class="word">mode ${lane.mode}</span>`;
  return html`<label class="word">mode${' '}
    <select value=${lane.mode} aria-label=${`Mode of ${nameOf(lane)}`} onChange=${(event) => onPick(event.target.value)}>
      ${modes.map((mode) => html`<option key=${mode} value=${mode}>${mode}</option>`)}
    </select></label>`;
}

function Item({ item, lane, isFirst, actions }) {
  const { number, kind, excerpt } = item;
  const words = excerpt === '' ? '(no text)' : `“${excerpt}”`;
  const button = (word, act) =>
    html`<button class="link" onClick=${() => act(item)} aria-label=${`${word}: #${number} ${words}`}>${word}</button>`;
  return html`<li data-item=${item.id}>
    <span class="words">${words}</span>
    <span class="detail">${factsOf(item).join(', ')}</span>
    ${
      lane.class === 'main' &&
      html`<span class="acts">
        ${kind !== 'command' && button('edit', actions.edit)}
        ${kind !== 'command' && !isFirst && button('move to the front', actions.promote)}
        ${button('cancel', actions.cancel)}
      </span>`
    }
  </li>`;
}

class Rewording extends Component {
  state = { text: this.props.item.text };

  componentDidMount() {
    this.field.focus();
  }

  render({ item, actions }, { text }) {
    const keep = (field) => {
      this.field = field;
    };
    const submit = (event) => {
      event.preventDefault();
      actions.save(item, text);
    };
    return html`<form class="rewording" onSubmit=${submit}>
      <label for="rewording">New text of #${item.number}; its sender, place and files stay the same</label>
      <textarea id="rewording" ref=${keep} rows="5" maxlength="32000" value=${text}
        onInput=${(event) => this.setState({ text: event.target.value })}></textarea>
      <div class="choices">
        <button class="choice" disabled=${text.trim() === ''}>Save</button>
        <button type="button" class="choice" onClick=${actions.endEdit}>Back</button>
      </div>
    </form>`;
  }
}

function nameOf({ title, key, class: laneClass }) {
  if (title !== undefined) return title;
  return laneClass.startsWith('sub-') ? 'Sub-agent' : key;
}

function stateText({ state, run, holder }) {
  const since = run && durationText(run.ageMs);
  switch (state) {
    case 'active': {
      const lease = holder === undefined ? '' : `, lease renewed ${durationText(holder.leaseAgeMs)} ago`;
      return `${run.isStopping ? 'stopping, after' : 'working for'} ${since}${lease}`;
    }
    case 'parked':
      return `paused, run started ${since} ago, waiting for ${run.waitsFor || 'an external answer'}`;
    case 'unheld':
      return `waiting for a free worker, run started ${since} ago`;
    case 'due':
      return 'waiting for a free worker';
    case 'armed':
      return 'waiting for more messages or a later time';
    default:
      return 'idle';
  }
}

const itemMarks = { held: 'waiting for the rest', fetching: 'fetching its files' };

function factsOf({ number, sender, senderName, ageMs, kind, state, isAhead, files }) {
  const name = senderName === '' || senderName === sender ? sender : `${senderName} (${sender})`;
  const facts = [`#${number}`, name, `${durationText(ageMs)} ago`];
  if (kind !== 'message') facts.push(`a ${kind}`);
  if (isAhead) facts.push('moved up');
  if (itemMarks[state] !== undefined) facts.push(itemMarks[state]);
  if (files > 0) facts.push(files === 1 ? '1 file' : `${files} files`);
  return facts;
}

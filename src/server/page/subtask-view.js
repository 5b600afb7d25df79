/** Shows a subtask's instructions and result, with buttons that direct it while it runs. */
import { subtaskFacts, subtaskTime } from '/client/task-facts.js';
import { call } from '/page/api.js';
import { dollars } from '/page/children-view.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

const failed = "That didn't work. Please try again in a moment.";
const policies = {
  fail: 'If it fails, the task fails.',
  retry: 'If it fails, it is tried twice more.',
  skip: 'If it fails, the others go on without it.',
};

/** The details of one subtask. Its texts are read when they are shown, and again when its state has changed. */
export class SubtaskView extends Component {
  state = { record: undefined, said: '', problem: '', text: '', showsLog: false };

  componentDidMount() {
    this.read();
    if (this.props.isFocused) this.heading.focus();
  }

  componentDidUpdate({ subtask: before, isFocused }) {
    const { subtask } = this.props;
    if (before.state !== subtask.state || before.tries !== subtask.tries) this.read();
    if (this.props.isFocused && !isFocused) this.heading.focus();
  }

  async read() {
    const record = await call('tasks/show', { id: this.props.task.id }).catch(() => undefined);
    this.setState({ record, problem: record === undefined ? failed : '' });
  }

  /** Resolves with true if it worked. */
  async order(name, input, done) {
    const { task, subtask } = this.props;
    this.setState({ said: '', problem: '' });
    try {
      await call(name, { id: task.id, subtask: subtask.id, ...input });
      this.setState({ said: done });
      return true;
    } catch (error) {
      this.setState({ problem: error.text ?? failed });
      return false;
    }
  }

  async steer(event) {
    event.preventDefault();
    const { text } = this.state;
    if (text.trim() === '') return;
    if (await this.order('tasks/steer', { text }, 'It reads this before its next step.'))
      this.setState({ text: '' });
  }

  render({ subtask, now, onClose, children }, { record, said, problem, text, showsLog }) {
    const { id, state, agent, childId, tokens, cost, error, onFailure } = subtask;
    const texts = record?.texts[id];
    const keep = (heading) => {
      this.heading = heading;
    };
    const onKeyDown = (event) => {
      if (event.key !== 'Escape') return;
      event.preventDefault();
      event.stopPropagation();
      onClose();
    };
    const facts = [
      ...subtaskFacts(subtask),
      subtaskTime(subtask, now),
      tokens > 0 && `${tokens.toLocaleString()} tokens`,
    ];
    return html`<section class="subtask" aria-label=${`Subtask ${id}`} onKeyDown=${onKeyDown}>
      <div class="title"><strong tabindex="-1" ref=${keep}>${id}</strong>
        <button class="link" onClick=${onClose} aria-label=${`Close ${id}`}>close</button></div>
      <p class="detail">${[...facts, cost > 0 && dollars(cost)].filter(Boolean).join(' · ')}</p>
      <p class="detail">${policies[onFailure]}</p>
      ${error !== undefined && html`<p class="problem">${error}</p>`}
      <${Words} title="Instructions" text=${texts?.instructions} />
      <${Words} title="Expected" text=${texts?.expected} />
      <${Words} title=${state === 'done' ? 'Result' : 'What it said'} text=${texts?.result} />
      ${children}
      ${
        state === 'dispatched' &&
        agent !== 'self' &&
        html`<form class="steer" onSubmit=${(event) => this.steer(event)}>
          <input aria-label=${`Message to ${id}`} placeholder=${`Tell ${id} something`} maxlength="32000" value=${text}
            onInput=${(event) => this.setState({ text: event.target.value })} />
          <button class="choice">Steer</button></form>`
      }
      <div class="choices">
        ${
          state === 'dispatched' &&
          html`<button class="choice" onClick=${() => this.order('tasks/stop', {}, 'It is being stopped.')}>Stop ${id}</button>`
        }
        ${childId !== undefined && html`<button class="choice" onClick=${() => this.setState({ showsLog: true })}>Show its log</button>`}
      </div>
      <p class="detail" role="status">${said}</p>
      <p class="problem" role="alert">${problem}</p>
      ${showsLog && html`<${LogDialog} ...${{ id, childId }} onClose=${() => this.setState({ showsLog: false })} />`}
    </section>`;
  }
}

function Words({ title, text }) {
  if (text === undefined || text === '') return null;
  return html`<div class="words"><b>${title}</b><pre tabindex="0" aria-label=${title}>${text}</pre></div>`;
}

/** What the subtask's sub-agent has read, said and called. */
class LogDialog extends Component {
  state = { messages: undefined, problem: '' };

  async componentDidMount() {
    this.dialog.showModal();
    const read = await call('subagents/log', { id: this.props.childId }).catch(() => undefined);
    this.setState(read === undefined ? { problem: failed } : { messages: read.messages });
  }

  render({ id, onClose }, { messages, problem }) {
    const keep = (dialog) => {
      this.dialog = dialog;
    };
    return html`<dialog class="why card" ref=${keep} onClose=${onClose} aria-labelledby="log-title">
      <h2 id="log-title">Log of ${id}</h2>
      <pre tabindex="0" aria-label="Messages">${messages === undefined ? problem || 'Loading…' : logText(messages)}</pre>
      <form method="dialog"><button class="quiet">Close</button></form>
    </dialog>`;
  }
}

const roles = { user: 'asked', assistant: 'said', tool: 'tool', system: 'system' };
/** Longest input or result of a call that is shown, in characters. */
const maxShown = 500;

function logText(messages) {
  const lines = messages.flatMap(({ role, parts }) => parts.map((part) => [role, lineOf(part)]));
  const shown = lines.filter(([, line]) => line !== '').map(([role, line]) => `${roles[role]}: ${line}`);
  return shown.length === 0 ? 'It has said nothing yet.' : shown.join('\n\n');
}

function lineOf({ type, data }) {
  const short = (text = '') => (text.length > maxShown ? `${text.slice(0, maxShown).toWellFormed()}…` : text);
  if (type === 'text') return data.text;
  if (type === 'tool_call') return `calls ${data.name} ${short(data.input)}`;
  if (type === 'tool_result') return `${data.name} answered ${short(data.content)}`;
  return '';
}

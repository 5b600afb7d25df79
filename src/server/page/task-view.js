/** A task in the conversation: how far it has come, its graph, a list with the same facts, and what can be done about it. */
import { countsOf, subtaskTime, subtaskWords, taskFacts, taskNews, totalOf } from '/client/task-facts.js';
import { call } from '/page/api.js';
import { dollars } from '/page/children-view.js';
import { SubtaskView } from '/page/subtask-view.js';
import { isDrawable, StateMark, TaskGraph } from '/page/task-graph.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

const tickMs = 1_000;
const failed = "That didn't work. Please try again in a moment.";

/** What the task's state looks like as a subtask's. */
const marks = { pending: 'pending', planning: 'pending', done: 'done', failed: 'failed' };

/**
 * A task with those that its subtasks have become. Only changes of states are announced: the rest of the card changes
 * with the clock.
 */
export class TaskCard extends Component {
  state = { now: Date.now(), news: '' };
  /** One that has ended begins closed; the person may open it. */
  isOpen = this.props.task.state !== 'done';

  componentDidMount() {
    this.timer = setInterval(() => this.tick(), tickMs);
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  componentDidUpdate(before) {
    const { task } = this.props;
    const news = before.task === task ? '' : taskNews(before.task, task);
    if (news !== '') this.setState({ news: `${task.title}: ${news}` });
  }

  tick() {
    if (!document.hidden && this.props.task.endedAt === undefined) this.setState({ now: Date.now() });
  }

  render({ task, tasks }, { now, news }) {
    return html`<section class="task" aria-live="off" aria-label=${`Task: ${task.title}`} data-task=${task.id}>
      <p class="heard" role="status">${news}</p>
      <details class="card" open=${this.isOpen}>
        <summary><${StateMark} state=${marks[task.state] ?? 'dispatched'} />
          <span class="words"><span class="name">${task.title}</span>${' '}<span class="detail">${taskFacts(task)}</span></span>
        </summary>
        <${TaskBody} ...${{ task, tasks, now }} />
      </details>
    </section>`;
  }
}

/** All of a task but its first line. */
class TaskBody extends Component {
  state = { selected: undefined, isFocused: false, said: '' };

  select(id, { withFocus = false } = {}) {
    const isSame = id === this.state.selected && !withFocus;
    this.setState({ selected: isSame ? undefined : id, isFocused: withFocus });
  }

  close() {
    const { selected } = this.state;
    this.setState({ selected: undefined }, () =>
      this.body.querySelector(`[data-node="${CSS.escape(selected)}"]`)?.focus(),
    );
  }

  async order(name, input) {
    this.setState({ said: '' });
    const said = await call(name, { id: this.props.task.id, ...input }).then(
      () => '',
      (error) => error.text ?? failed,
    );
    this.setState({ said });
  }

  render({ task, tasks, now }, { selected, isFocused, said }) {
    const isDrawn = isDrawable(task);
    const shown = task.subtasks.find(({ id }) => id === selected);
    const onSelect = (id, options) => this.select(id, options);
    const keep = (body) => {
      this.body = body;
    };
    return html`<div class="body" ref=${keep}>
      ${isDrawn && html`<${TaskGraph} ...${{ task, now, selected, onSelect }} />`}
      ${!isDrawn && totalOf(task) > 0 && html`<${Counts} task=${task} />`}
      ${
        shown &&
        html`<${SubtaskView} key=${shown.id} ...${{ task, now, isFocused }} subtask=${shown} onClose=${() => this.close()}>
          <${Nested} ...${{ tasks, now }} id=${shown.taskId} /></${SubtaskView}>`
      }
      ${task.subtasks.length > 0 && html`<${SubtaskList} ...${{ task, now, onSelect }} isOpen=${!isDrawn} />`}
      <div class="choices">
        ${task.endedAt === undefined && html`<button class="choice" onClick=${() => this.order('tasks/stop')}>Stop the task</button>`}
        ${task.state === 'failed' && totalOf(task) > 0 && html`<button class="choice" onClick=${() => this.order('tasks/retry')}>Try again</button>`}
      </div>
      <p class="problem" role="alert">${said}</p>
    </div>`;
  }
}

function Counts({ task }) {
  const counts = Object.entries(countsOf(task)).map(([state, count]) => [subtaskWords[state], count]);
  return html`<p class="detail">This graph is too large to draw.${
    task.counts !== undefined && ' The list has only what runs, waits or has failed.'
  }</p>
    <ul class="counts">${counts.map(([word, count]) => html`<li key=${word}><b>${count}</b> ${word}</li>`)}</ul>`;
}

/** The task that a subtask's agent has made of it. */
function Nested({ id, tasks, now }) {
  const task = id === undefined ? undefined : tasks.find((one) => one.id === id);
  if (task === undefined) return null;
  return html`<details class="nested">
    <summary>Its own graph: ${taskFacts(task)}</summary>
    <${TaskBody} ...${{ task, tasks, now }} />
  </details>`;
}

/** Its rows are made when it is open: a graph may have hundreds. */
class SubtaskList extends Component {
  state = { isOpen: this.props.isOpen };

  render({ task, now, onSelect }, { isOpen }) {
    return html`<details class="rows" open=${isOpen} onToggle=${(event) => this.setState({ isOpen: event.target.open })}>
      <summary>Subtasks as a list</summary>
      ${
        isOpen &&
        html`<div class="table" tabindex="0" role="region" aria-label=${`Subtasks of ${task.title}`}><table>
          <thead><tr><th scope="col">Subtask</th><th scope="col">State</th><th scope="col">After</th>
            <th scope="col">Agent</th><th scope="col">Tries</th><th scope="col">Time</th><th scope="col">Cost</th></tr></thead>
          <tbody>${task.subtasks.map(
            (subtask) =>
              html`<${Row} key=${subtask.id} ...${{ subtask, now }}
                onSelect=${() => onSelect(subtask.id, { withFocus: true })} />`,
          )}</tbody>
        </table></div>`
      }
    </details>`;
  }
}

function Row({ subtask, now, onSelect }) {
  const { id, state, dependsOn, agent, tries, cost } = subtask;
  return html`<tr>
    <th scope="row"><button class="link" onClick=${onSelect}>${id}</button></th>
    <td><span class="${state}"><${StateMark} state=${state} /> ${subtaskWords[state]}</span></td>
    <td>${dependsOn.join(', ') || '–'}</td>
    <td>${agent}</td>
    <td>${tries}</td>
    <td>${subtaskTime(subtask, now) || '–'}</td>
    <td>${dollars(cost)}</td>
  </tr>`;
}

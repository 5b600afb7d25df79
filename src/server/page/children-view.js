/** Shows each sub-agent as a line of the conversation, and all of them as a tree. */
import { childDuration, childFacts } from '/client/child-facts.js';
import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);

const marks = { queued: '◌', running: '…', completed: '✓', stopped: '■' };
const failedMark = '✕';

/** One sub-agent in the conversation: its name, state, duration and tokens. */
export function ChildLine({ child }) {
  return html`<div class="child" data-child=${child.id}
    data-depth=${child.depth}>
    <${Mark} child=${child} />
    <span class="name">${child.name}</span>
    <span class="facts">${childFacts(child)}</span>
  </div>`;
}

/** The panel above the conversation; empty while there is nothing to show. */
export function ChildTree({ nodes }) {
  const shown = inTreeOrder(nodes.filter((child) => !child.isArchived));
  return html`<section class="trees" aria-label="Sub-agents">${shown.length > 0 && html`<${Tree} shown=${shown} />`}</section>`;
}

function Tree({ shown }) {
  return html`<details class="tree panel">
    <summary>${summaryOf(shown)}</summary>
    <div class="card"><table>
      <thead><tr><th>Sub-agent</th><th>Depth</th><th>State</th><th>Time</th><th>Tokens</th><th>Cost</th></tr></thead>
      <tbody>${shown.map((child) => html`<${Row} key=${child.id} child=${child} />`)}</tbody>
    </table></div>
  </details>`;
}

function Row({ child }) {
  return html`<tr>
    <td data-depth=${child.depth}><${Mark} child=${child} />
      <span class="name" title=${`${child.id}, agent ${child.agentId}`}>${child.name}</span></td>
    <td>${child.depth}</td>
    <td>${child.status ?? child.state}</td>
    <td>${childDuration(child)}</td>
    <td>${child.tokens.toLocaleString()}</td>
    <td>${dollars(child.cost)}</td>
  </tr>`;
}

function Mark({ child }) {
  const state = child.status ?? child.state;
  return html`<span class="child-mark ${state}" aria-hidden="true">${marks[state] ?? failedMark}</span>`;
}

function summaryOf(nodes) {
  const counts = Object.entries({ running: 'running', queued: 'queued', done: 'done' })
    .map(([state, word]) => [nodes.filter((child) => child.state === state).length, word])
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`);
  const cost = nodes.reduce((sum, child) => sum + child.cost, 0);
  return `Sub-agents: ${counts.join(', ')}${cost === 0 ? '' : ` · ${dollars(cost)}`}`;
}

/** Puts each sub-agent after the one that spawned it. A child whose parent isn't in the list is at the top level. */
export function inTreeOrder(nodes) {
  const known = new Set(nodes.map(({ id }) => id));
  const below = new Map();
  for (const child of nodes) {
    const above = known.has(child.parentId) ? child.parentId : undefined;
    below.set(above, [...(below.get(above) ?? []), child]);
  }
  const walk = (id) => (below.get(id) ?? []).flatMap((child) => [child, ...walk(child.id)]);
  return walk(undefined);
}

/** Returns micro-dollars as dollars. */
export function dollars(micro) {
  return `$${(micro / 1e6).toFixed(4)}`;
}

/**
 * Draws the graph of a task. Its layout is made once for each structure, whatever the states are, and the library for it
 * is loaded with the first graph.
 */
import { subtaskFacts, subtaskTime, subtaskWords } from '/client/task-facts.js';
import { dollars } from '/page/children-view.js';
import htm from '/vendor/htm.js';
import { Component, h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Boxes, and how many characters of a name and of an agent's id fit; on a phone two of them are next to each other. */
const wideBox = { width: 190, height: 68, maxName: 18, maxAgent: 14 };
const narrowBox = { width: 144, height: 68, maxName: 12, maxAgent: 9 };
const wideFrom = 480;
const gaps = { nodesep: 12, ranksep: 36, edgesep: 10, marginx: 2, marginy: 2 };

/** Nodes and the pieces of their edges: from the first on the layout is made faster, beyond the second not at all. */
const largeWeight = 400;
const maxWeight = 2_000;

/** Says whether the graph is small enough that its layout doesn't block the page for long. */
export function isDrawable({ subtasks, counts }) {
  return counts === undefined && subtasks.length > 0 && planOf(subtasks).weight <= maxWeight;
}

/** By the list of subtasks, which is a new one after each change: a card asks each second. */
const plans = new WeakMap();

/** Returns the edges to draw, and the rank of each node: the longest way to it from one that depends on nothing. */
function planOf(subtasks) {
  if (!plans.has(subtasks)) plans.set(subtasks, makePlan(subtasks));
  return plans.get(subtasks);
}

function makePlan(subtasks) {
  const ranks = ranksOf(subtasks);
  const all = subtasks.flatMap(({ id, dependsOn }) => dependsOn.map((above) => ({ from: above, to: id })));
  const weightOf = (edges) =>
    edges.reduce((sum, { from, to }) => sum + ranks.get(to) - ranks.get(from), subtasks.length);
  if (weightOf(all) <= largeWeight) return { ranks, edges: all, weight: weightOf(all) };
  const edges = withoutImplied(subtasks, ranks, all);
  return { ranks, edges, weight: weightOf(edges) };
}

function ranksOf(subtasks) {
  const byId = new Map(subtasks.map((subtask) => [subtask.id, subtask]));
  const ranks = new Map();
  const rankOf = (id) => {
    if (!ranks.has(id)) {
      const above = byId.get(id)?.dependsOn ?? [];
      ranks.set(id, Math.max(-1, ...above.map(rankOf)) + 1);
    }
    return ranks.get(id);
  };
  for (const { id } of subtasks) rankOf(id);
  return ranks;
}

/** Leaves out edges from a node to one that is reached from it by a longer way, too. */
function withoutImplied(subtasks, ranks, edges) {
  const above = new Map();
  const inOrder = subtasks.toSorted((a, b) => ranks.get(a.id) - ranks.get(b.id));
  for (const { id, dependsOn } of inOrder)
    above.set(id, new Set(dependsOn.flatMap((one) => [one, ...above.get(one)])));
  const direct = new Map(subtasks.map(({ id, dependsOn }) => [id, dependsOn]));
  return edges.filter(({ from, to }) => !direct.get(to).some((one) => above.get(one).has(from)));
}

/** Returns the boxes for this width, and whether ranks go to the right or down: the way with less scrolling to the side. */
function shapeOf(ranks, width) {
  const box = width < wideFrom ? narrowBox : wideBox;
  const sizes = new Map();
  for (const rank of ranks.values()) sizes.set(rank, (sizes.get(rank) ?? 0) + 1);
  const across = sizes.size * (box.width + gaps.ranksep) - gaps.ranksep + 2 * gaps.marginx;
  const down = Math.max(...sizes.values()) * (box.width + gaps.nodesep);
  return { box, rankdir: across <= Math.max(width, down) ? 'LR' : 'TB' };
}

/** Returns the places of boxes and edges for a card of this width. */
export function placeGraph({ Graph, layout }, subtasks, width) {
  const { ranks, edges, weight } = planOf(subtasks);
  const { box, rankdir } = shapeOf(ranks, width);
  const graph = new Graph().setGraph({ rankdir, ...gaps, ranker: 'tight-tree' });
  for (const { id } of subtasks) graph.setNode(id, { width: box.width, height: box.height });
  for (const { from, to } of edges) graph.setEdge(from, to, {});
  layout(graph, { disableOptimalOrderHeuristic: weight > largeWeight });
  const nodes = new Map(subtasks.map(({ id }) => [id, graph.node(id)]));
  const isAcross = rankdir === 'LR';
  const pathOf = ({ from, to }) => {
    // The library has a point in each gap and in each rank on the way; those in the ranks are where boxes are avoided.
    const between = graph
      .edge(from, to)
      .points.slice(1, -1)
      .filter((_point, i) => i % 2 === 1);
    return pathThrough([nodes.get(from), ...between, nodes.get(to)], box, isAcross);
  };
  const along = (node) => (isAcross ? [node.x, node.y] : [node.y, node.x]);
  return {
    ...{ box, nodes, edges: edges.map((edge) => ({ ...edge, path: pathOf(edge) })) },
    ...{ width: Math.ceil(graph.graph().width), height: Math.ceil(graph.graph().height) },
    order: [...nodes.keys()].sort((a, b) => {
      const [[rank, place], [otherRank, otherPlace]] = [along(nodes.get(a)), along(nodes.get(b))];
      return rank - otherRank || place - otherPlace;
    }),
  };
}

/** Returns a line that leaves and enters ranks straight, and bends in the gaps between them. */
function pathThrough(places, box, isAcross) {
  const half = (isAcross ? box.width : box.height) / 2;
  const at = (along, beside) => (isAcross ? `${along} ${beside}` : `${beside} ${along}`);
  const [first, ...rest] = places.map(({ x, y }) => (isAcross ? [x, y] : [y, x]).map(Math.round));
  let [along, beside] = [first[0] + half, first[1]];
  const start = `M${at(along, beside)}`;
  const bends = rest.map(([middle, next], i) => {
    const [from, to] = [along, middle - half];
    const bend = `C${at((from + to) / 2, beside)} ${at((from + to) / 2, next)} ${at(to, next)}`;
    [along, beside] = [middle + half, next];
    return i === rest.length - 1 ? bend : `${bend}L${at(along, beside)}`;
  });
  return start + bends.join('');
}

/** A drawn graph, with one stop for the Tab key; arrow keys go from node to node. */
export class TaskGraph extends Component {
  state = { placed: undefined, focused: undefined, hasFailed: false };

  componentDidMount() {
    // The page's own scroll bar, or a turned phone, changes the width.
    this.observer = new ResizeObserver(() => this.arrange());
    this.observer.observe(this.frame);
  }

  componentDidUpdate(before) {
    if (before.task !== this.props.task) this.arrange();
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.key = undefined;
  }

  async arrange() {
    const { subtasks } = this.props.task;
    const width = this.frame.clientWidth;
    const structure = subtasks.map(({ id, dependsOn }) => [id, dependsOn]);
    const key = JSON.stringify([shapeOf(planOf(subtasks).ranks, width), structure]);
    if (key === this.key) return;
    this.key = key;
    try {
      const library = await import('/vendor/dagre.js');
      if (this.key !== key) return;
      const placed = placeGraph(library, subtasks, width);
      this.setState({ placed, hasFailed: false }, () => this.lookAt(placed));
    } catch {
      if (this.key === key) this.setState({ hasFailed: true });
    }
  }

  /** Scrolls to what runs or has failed, otherwise to the beginning. */
  lookAt({ nodes, order }) {
    const states = new Map(this.props.task.subtasks.map(({ id, state }) => [id, state]));
    const id = order.find((one) => ['dispatched', 'failed'].includes(states.get(one))) ?? order[0];
    const { x, y } = nodes.get(id);
    this.frame.scrollLeft = x - this.frame.clientWidth / 2;
    this.frame.scrollTop = y - this.frame.clientHeight / 2;
  }

  keyed(event) {
    const { order } = this.state.placed;
    const at = order.indexOf(event.target.dataset.node);
    const to = targets[event.key]?.(at, order.length);
    if (to === undefined) {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      return this.props.onSelect(event.target.dataset.node, { withFocus: true });
    }
    event.preventDefault();
    const focused = order[Math.min(Math.max(to, 0), order.length - 1)];
    this.setState({ focused }, () => this.focus(focused));
  }

  focus(id) {
    const node = this.frame.querySelector(`[data-node="${CSS.escape(id)}"]`);
    node?.focus({ preventScroll: true });
    node?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  render({ task, now, selected, onSelect }, { placed, focused, hasFailed }) {
    const keep = (frame) => {
      this.frame = frame;
    };
    const byId = new Map(task.subtasks.map((subtask) => [subtask.id, subtask]));
    const stop = focused ?? selected ?? placed?.order[0];
    return html`<div class="graph" ref=${keep}>
      ${hasFailed && html`<p class="detail">The graph couldn't be drawn. The list below has the same facts.</p>`}
      ${
        placed !== undefined &&
        html`<svg width=${placed.width} height=${placed.height} viewBox="0 0 ${placed.width} ${placed.height}"
          role="group" aria-label="Graph of the subtasks; arrow keys go from one to the next"
          onKeyDown=${(event) => this.keyed(event)}>
          <defs><marker id="arrow-${task.id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
            orient="auto"><path d="M0 0.5 7.5 4 0 7.5z" /></marker></defs>
          ${placed.edges.map(
            ({ from, to, path }) =>
              html`<path class="edge ${byId.get(from)?.state}" key=${`${from} ${to}`} d=${path}
                marker-end="url(#arrow-${task.id})" />`,
          )}
          ${task.subtasks.map(
            (subtask) =>
              placed.nodes.has(subtask.id) &&
              html`<${Node} key=${subtask.id} ...${{ subtask, onSelect }} time=${subtaskTime(subtask, now)} box=${placed.box}
                place=${placed.nodes.get(subtask.id)} isStop=${subtask.id === stop} isSelected=${subtask.id === selected} />`,
          )}
        </svg>`
      }
    </div>`;
  }
}

const targets = {
  ArrowRight: (at) => at + 1,
  ArrowDown: (at) => at + 1,
  ArrowLeft: (at) => at - 1,
  ArrowUp: (at) => at - 1,
  Home: () => 0,
  End: (_at, length) => length - 1,
};

/** One of up to 300 boxes, of which a tick of the clock or a change concerns a few. */
class Node extends Component {
  shouldComponentUpdate({ subtask, ...next }) {
    const { subtask: shown, ...before } = this.props;
    const isSame = (a, b, names) => names.every((name) => a[name] === b[name]);
    return !(
      isSame(subtask, shown, shownFacts) && isSame(next, before, ['time', 'place', 'isStop', 'isSelected'])
    );
  }

  render({ subtask, time, box, place, isStop, isSelected, onSelect }) {
    const { id, agent, state, tries, cost, taskId } = subtask;
    const x = Math.round(place.x - box.width / 2);
    const y = Math.round(place.y - box.height / 2);
    const facts = [subtaskWords[state], time, taskId && 'own graph'].filter(Boolean);
    const who = [
      cut(agent, box.maxAgent),
      tries > 1 && (box === narrowBox ? `×${tries}` : `try ${tries}`),
      cost > 0 && dollars(cost),
    ].filter(Boolean);
    const label = [`${id}: ${subtask.name}`, ...subtaskFacts(subtask)].join(', ');
    return html`<g class="node ${state} ${isSelected ? 'selected' : ''}" transform="translate(${x} ${y})">
      <g aria-hidden="true">
        <rect class="box" width=${box.width} height=${box.height} rx="10" />
        <svg width=${box.width - 4} height=${box.height}>
          <${StateShape} state=${state} x=${10} y=${10} />
          <text class="id" x="34" y="23">${cut(id, box.maxName)}</text>
          <text class="who" x="12" y="43">${who.join(' · ')}</text>
          <text class="facts" x="12" y="59">${facts.join(' · ')}</text>
        </svg>
      </g>
      <rect class="hit" width=${box.width} height=${box.height} rx="10" data-node=${id} role="button"
        tabindex=${isStop ? 0 : -1} aria-expanded=${String(isSelected)} aria-label=${label} onClick=${() => onSelect(id)}>
        <title>${subtask.name}</title></rect>
    </g>`;
  }
}

const shownFacts = ['state', 'agent', 'tries', 'cost', 'taskId', 'name'];

function cut(text, longest) {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

/** The state as a shape, for those who can't tell its colour. */
export function StateMark({ state }) {
  return html`<svg class="state-mark" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
    <${StateShape} state=${state} x=${0} y=${0} /></svg>`;
}

const shapes = {
  pending: () => html`<circle class="line dashed" cx="8" cy="8" r="6" />`,
  dispatched: () =>
    html`<circle class="line" cx="8" cy="8" r="6.5" /><circle class="fill pulse" cx="8" cy="8" r="3.5" />`,
  done: () =>
    html`<circle class="fill" cx="8" cy="8" r="7.5" /><path class="cut" d="M4.5 8.3 7 10.7 11.6 5.6" />`,
  failed: () =>
    html`<rect class="fill" x="1" y="1" width="14" height="14" rx="3" /><path class="cut" d="M5 5l6 6M11 5l-6 6" />`,
  skipped: () =>
    html`<path class="line" d="M8 1.2 14.8 8 8 14.8 1.2 8z" /><path class="line" d="M5.4 8h5.2" />`,
};

function StateShape({ state, x, y }) {
  return html`<g class="shape ${state}" transform="translate(${x} ${y})">${shapes[state]()}</g>`;
}

/**
 * What must follow from events, said in another way than the engine says it: no event has consequences of its own here;
 * each only changes what is known of single nodes, and the graph is then read as a whole.
 */
import type { FailurePolicy, SubtaskState } from '../../../src/contracts/task.ts';
import type { GraphAction, GraphEvent, GraphNode } from '../../../src/store/tasks/graph.ts';

export type ModelNode = {
  readonly id: string;
  readonly dependsOn: readonly string[];
  readonly onFailure: FailurePolicy;
};

type Known = { tries: number; triedFrom: number; state: SubtaskState };

/** A graph whose events are played by the rules of the specification. */
export class GraphModel {
  readonly known: Map<string, Known>;
  finishes = 0;
  status: 'open' | 'done' | 'failed' | 'stopped' = 'open';
  readonly #nodes: readonly ModelNode[];

  constructor(nodes: readonly ModelNode[]) {
    this.#nodes = nodes;
    this.known = new Map(nodes.map(({ id }) => [id, { tries: 0, triedFrom: 0, state: 'pending' }]));
  }

  play(event: GraphEvent): void {
    if (event.kind === 'reopen') this.#reopen();
    else if (this.status !== 'open') return;
    else if (event.kind === 'stop') this.#end('stopped');
    else if (event.kind === 'reply') this.#reply(event);
    this.#settle();
  }

  #reply({ id, try: which, status, isFinal = false }: Extract<GraphEvent, { kind: 'reply' }>): void {
    const node = this.#nodes.find((one) => one.id === id);
    const known = this.known.get(id);
    if (!node || !known || known.state !== 'dispatched' || known.tries !== which) return;
    if (status === 'done') known.state = 'done';
    else if (node.onFailure === 'skip') known.state = 'skipped';
    else if (node.onFailure === 'retry' && !isFinal && known.tries % 3 > 0) known.tries += 1;
    else {
      known.state = 'failed';
      this.#end('failed');
    }
  }

  #end(status: 'failed' | 'stopped'): void {
    for (const known of this.known.values())
      if (known.state === 'dispatched' || known.state === 'pending')
        known.state = known.tries === 0 ? 'skipped' : 'failed';
    this.status = status;
    this.finishes += 1;
  }

  #reopen(): void {
    if (this.status === 'open' || this.known.size === 0) return;
    this.status = 'open';
    for (const known of this.known.values())
      if (known.state === 'failed' || (known.state === 'skipped' && known.tries === 0))
        known.state = 'pending';
  }

  /** Dispatches whatever has all it needs; a graph without open nodes is done. */
  #settle(): void {
    if (this.status !== 'open') return;
    const isSatisfied = (id: string) => ['done', 'skipped'].includes(this.known.get(id)?.state ?? '');
    for (const { id, dependsOn } of this.#nodes) {
      const known = this.known.get(id);
      if (known?.state !== 'pending' || !dependsOn.every(isSatisfied)) continue;
      known.tries += 1;
      known.state = 'dispatched';
    }
    const isOpen = [...this.known.values()].some(
      ({ state }) => state === 'pending' || state === 'dispatched',
    );
    if (isOpen) return;
    this.status = 'done';
    this.finishes += 1;
  }
}

/** Returns the graph after the actions, as the store would write it. Dispatches beyond `most` are left out. */
export function applied(
  graph: readonly GraphNode[],
  actions: readonly GraphAction[],
  most = Number.POSITIVE_INFINITY,
): readonly GraphNode[] {
  const after = new Map(graph.map((node) => [node.id, node]));
  let dispatched = 0;
  for (const action of actions) {
    if (action.kind === 'finish') continue;
    const node = after.get(action.id);
    if (!node) throw new Error(`there is no node ${action.id}`);
    if (action.kind === 'end') after.set(node.id, { ...node, state: action.state });
    else if (action.kind === 'reopen') after.set(node.id, { ...node, state: 'pending' });
    else if (dispatched++ < most) after.set(node.id, { ...node, state: 'dispatched', tries: action.try });
  }
  return [...after.values()];
}

/** The engine of task graphs: pure, without a database, so that every order of events can be tried. */
import type { FailurePolicy, SubtaskState } from '#contracts/task.ts';

/** A subtask as far as the engine needs to know it. */
export type GraphNode = {
  readonly id: string;
  readonly dependsOn: readonly string[];
  readonly onFailure: FailurePolicy;
  readonly state: SubtaskState;
  /** How often it was dispatched. */
  readonly tries: number;
};

/** Something that has happened to a graph. */
export type GraphEvent =
  /** Dispatch whatever is ready. */
  | { readonly kind: 'go' }
  | {
      readonly kind: 'reply';
      readonly id: string;
      /** Which of its tries replies; any other than the current one changes nothing. */
      readonly try: number;
      readonly status: 'done' | 'failed';
      /** Trying again can't help, or somebody doesn't want it. */
      readonly isFinal?: boolean;
    }
  | { readonly kind: 'stop' }
  /** Begin again with what has failed and what was skipped because of it; with nothing left, only the answer. */
  | { readonly kind: 'reopen' };

/** A consequence, which becomes rows. */
export type GraphAction =
  | { readonly kind: 'dispatch'; readonly id: string; readonly try: number }
  /** Its end. `stops`: somebody is still working on it. */
  | {
      readonly kind: 'end';
      readonly id: string;
      readonly state: 'done' | 'failed' | 'skipped';
      readonly stops?: true;
    }
  | { readonly kind: 'reopen'; readonly id: string }
  /** Nothing of the graph is open any more. It is always the last action. */
  | { readonly kind: 'finish'; readonly status: 'done' | 'failed' | 'stopped' };

/** How often a subtask with the policy `retry` is tried before it counts as failed. */
export const triesPerRound = 3;

/**
 * Says what follows from the event, in order; nothing for an event that no longer counts. A graph without open nodes
 * stays as it is, unless it is reopened.
 */
export function advance(graph: readonly GraphNode[], event: GraphEvent): readonly GraphAction[] {
  if (event.kind === 'reopen') return reopen(graph);
  if (!graph.some(isOpen)) return [];
  if (event.kind === 'stop') return [...endAll(graph), { kind: 'finish', status: 'stopped' }];
  if (event.kind === 'go') return dispatchReady(graph);
  const node = graph.find(({ id }) => id === event.id);
  if (node?.state !== 'dispatched' || node.tries !== event.try) return [];
  if (event.status === 'done') return endNode(graph, { id: node.id, state: 'done' });
  if (node.onFailure === 'skip') return endNode(graph, { id: node.id, state: 'skipped' });
  const mayRetry = node.onFailure === 'retry' && event.isFinal !== true && node.tries % triesPerRound !== 0;
  if (mayRetry) return [{ kind: 'dispatch', id: node.id, try: node.tries + 1 }];
  const others = graph.filter((other) => other !== node);
  const own = { kind: 'end', id: node.id, state: 'failed' } as const;
  return [own, ...endAll(others), { kind: 'finish', status: 'failed' }];
}

function isOpen({ state }: GraphNode): boolean {
  return state === 'pending' || state === 'dispatched';
}

/** Ends the node and continues with those that have waited for it. */
function endNode(
  graph: readonly GraphNode[],
  end: { readonly id: string; readonly state: 'done' | 'skipped' },
): readonly GraphAction[] {
  const after = graph.map((node) => (node.id === end.id ? { ...node, state: end.state } : node));
  const ended = { kind: 'end', ...end } as const;
  if (!after.some(isOpen)) return [ended, { kind: 'finish', status: 'done' }];
  return [ended, ...dispatchReady(after)];
}

/** Only all of its dependencies make a node ready, each done or skipped. */
function dispatchReady(graph: readonly GraphNode[]): readonly GraphAction[] {
  const satisfied = new Set(
    graph.flatMap(({ id, state }) => (state === 'done' || state === 'skipped' ? [id] : [])),
  );
  return graph
    .filter(({ state, dependsOn }) => state === 'pending' && dependsOn.every((id) => satisfied.has(id)))
    .map(({ id, tries }) => ({ kind: 'dispatch', id, try: tries + 1 }) as const);
}

/** A node that was tried has failed, even if it was about to begin again; `skipped` would count as good enough then. */
function endAll(graph: readonly GraphNode[]): readonly GraphAction[] {
  return graph.filter(isOpen).map(({ id, state, tries }) => ({
    ...({ kind: 'end', id, state: tries === 0 ? 'skipped' : 'failed' } as const),
    ...(state === 'dispatched' && ({ stops: true } as const)),
  }));
}

/** A node that was skipped by its own policy has let others run, so it stays as it is. */
function reopen(graph: readonly GraphNode[]): readonly GraphAction[] {
  const again = graph.filter(
    ({ state, tries }) => state === 'failed' || (state === 'skipped' && tries === 0),
  );
  if (graph.some(isOpen)) return [];
  if (again.length === 0) return graph.length === 0 ? [] : [{ kind: 'finish', status: 'done' }];
  const ids = new Set(again.map(({ id }) => id));
  const after = graph.map((node) => (ids.has(node.id) ? { ...node, state: 'pending' as const } : node));
  return [...again.map(({ id }) => ({ kind: 'reopen', id }) as const), ...dispatchReady(after)];
}

/**
 * Returns why these nodes are no graph, as a sentence that says what to change: two nodes with one id, an unknown
 * dependency, or a cycle. Undefined if they are one.
 */
export function graphProblem(nodes: readonly Pick<GraphNode, 'id' | 'dependsOn'>[]): string | undefined {
  // Ids become names of files, and some file systems ignore case.
  const names = new Set<string>();
  const twice = nodes.find(({ id }) => names.size === names.add(id.toLowerCase()).size);
  if (twice)
    return `Two subtasks have the id "${twice.id}", upper and lower case being the same; give each its own.`;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  for (const { id, dependsOn } of nodes) {
    const unknown = dependsOn.find((name) => !byId.has(name));
    if (unknown !== undefined)
      return `"${id}" depends on "${unknown}", which is none of the subtasks: ${listFew([...byId.keys()], ', ')}.`;
  }
  const cycle = findCycle(byId);
  return (
    cycle && `These subtasks wait for each other: ${listFew(cycle, ' → ')}. Remove one of the dependencies.`
  );
}

/** Most ids that a sentence names. */
const fewIds = 10;

function listFew(ids: readonly string[], separator: string): string {
  const named = ids.length <= fewIds ? ids : [...ids.slice(0, fewIds - 1), '…', ...ids.slice(-1)];
  return named.join(separator);
}

/** Removes nodes without open dependencies until none is left, or only cycles and what depends on them. */
function findCycle(
  nodes: ReadonlyMap<string, Pick<GraphNode, 'id' | 'dependsOn'>>,
): readonly string[] | undefined {
  const missing = new Map([...nodes].map(([id, { dependsOn }]) => [id, new Set(dependsOn).size]));
  const dependants = new Map<string, string[]>([...nodes.keys()].map((id) => [id, []]));
  for (const { id, dependsOn } of nodes.values())
    for (const name of new Set(dependsOn)) dependants.get(name)?.push(id);
  const free = [...missing].flatMap(([id, count]) => (count === 0 ? [id] : []));
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    missing.delete(id);
    for (const dependant of dependants.get(id) ?? []) {
      const left = (missing.get(dependant) ?? 0) - 1;
      missing.set(dependant, left);
      if (left === 0) free.push(dependant);
    }
  }
  return missing.size === 0 ? undefined : walkCycle(nodes, missing);
}

/** Every node that is left has a dependency that is left, too: following them leads into a cycle. */
function walkCycle(
  nodes: ReadonlyMap<string, Pick<GraphNode, 'dependsOn'>>,
  left: ReadonlyMap<string, number>,
): readonly string[] {
  const places = new Map<string, number>();
  for (let [id] = left.keys(); id !== undefined; ) {
    const seen = places.get(id);
    if (seen !== undefined) return [...[...places.keys()].slice(seen), id];
    places.set(id, places.size);
    id = nodes.get(id)?.dependsOn.find((name) => left.has(name));
  }
  return [];
}

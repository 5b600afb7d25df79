import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  advance,
  type GraphEvent,
  type GraphNode,
  graphProblem,
  triesPerRound,
} from '../../../src/store/tasks/graph.ts';
import { growthOf } from '../../growth/measure.ts';
import { budget, holds } from '../../support/holds.ts';
import { applied, GraphModel, type ModelNode } from './graph-model.ts';
import { graphs } from './random-graphs.ts';

const fresh = (nodes: readonly ModelNode[]): readonly GraphNode[] =>
  nodes.map((node) => ({ ...node, state: 'pending' as const, tries: 0 }));
const isOpen = ({ state }: GraphNode) => state === 'pending' || state === 'dispatched';
const statesOf = (graph: readonly GraphNode[]) =>
  Object.fromEntries(graph.map(({ id, state, tries }) => [id, `${state} ${tries}`]));
const statesIn = (model: GraphModel) =>
  Object.fromEntries([...model.known].map(([id, { state, tries }]) => [id, `${state} ${tries}`]));

type Roll = { readonly what: number; readonly which: number; readonly most: number };
const rolls = fc.array(fc.record({ what: fc.nat(99), which: fc.nat(10_000), most: fc.nat(30) }), {
  minLength: 5,
  maxLength: 120,
});

/** Chooses an event; most of them count, some are late, early, of no node, or come again. */
function eventOf(
  graph: readonly GraphNode[],
  { what, which }: Roll,
  before: readonly GraphEvent[],
): GraphEvent {
  const working = graph.filter(({ state }) => state === 'dispatched');
  const node = working[which % Math.max(1, working.length)];
  const any = graph[which % graph.length];
  if (what < 4) return { kind: 'go' };
  if (what < 6) return { kind: 'stop' };
  if (what < 12) return { kind: 'reopen' };
  if (what < 22) return before[which % Math.max(1, before.length)] ?? { kind: 'go' };
  const status = what % 5 === 0 ? 'failed' : 'done';
  if (what < 30) return { kind: 'reply', id: any?.id ?? '', try: which % 5, status };
  if (what < 31) return { kind: 'reply', id: 'none', try: 1, status };
  if (!node) return { kind: 'go' };
  return { kind: 'reply', id: node.id, try: node.tries, status, isFinal: what % 7 === 0 };
}

describe('the engine of graphs', () => {
  it('does what the rules say, for any graph and any order of events', () => {
    const property = fc.property(graphs(200), rolls, (nodes, choices) => {
      const model = new GraphModel(nodes);
      let graph = fresh(nodes);
      let finishes = 0;
      const before: GraphEvent[] = [];
      const play = (event: GraphEvent, most: number) => {
        const actions = advance(graph, event);
        const ended = actions.findIndex(({ kind }) => kind === 'finish');
        if (ended !== -1) {
          expect(ended).toBe(actions.length - 1);
          finishes += 1;
        }
        for (const action of actions) {
          if (action.kind !== 'dispatch') continue;
          const { tries, dependsOn } = graph.find(({ id }) => id === action.id) as GraphNode;
          expect(action.try).toBe(tries + 1);
          const after = applied(graph, actions, 0);
          for (const id of dependsOn)
            expect(after.find((node) => node.id === id)?.state).toMatch(/^(done|skipped)$/);
        }
        graph = applied(graph, actions, most);
        before.push(event);
      };
      for (const roll of [{ what: 0, which: 0, most: 30 }, ...choices]) {
        const event = eventOf(graph, roll, before);
        model.play(event);
        play(event, Math.max(1, roll.most));
        // The step dispatches only so many at a time, and the next ones the others.
        while (advance(graph, { kind: 'go' }).length > 0) play({ kind: 'go' }, Math.max(1, roll.most));
        expect(statesOf(graph)).toEqual(statesIn(model));
        expect(finishes).toBe(model.finishes);
        // Somebody works on it, or it has ended: nothing waits for nobody.
        const isAtWork = graph.some(({ state }) => state === 'dispatched');
        expect(isAtWork).toBe(graph.some(isOpen));
      }
    });
    holds(property, budget(3_000, 6_000));
  });

  it('ends every graph, each node once, after every node it depends on', () => {
    const property = fc.property(graphs(200), fc.infiniteStream(fc.nat(99)), (nodes, luck) => {
      let graph = applied(fresh(nodes), advance(fresh(nodes), { kind: 'go' }));
      const ended: string[] = [];
      const started: string[] = graph.flatMap(({ id, state }) => (state === 'dispatched' ? [id] : []));
      const last: string[] = [];
      for (let steps = 0; graph.some(isOpen); steps++) {
        if (steps > nodes.length * 3) throw new Error('it goes on for ever');
        const working = graph.filter(({ state }) => state === 'dispatched');
        const [node] = working.slice((luck.next().value ?? 0) % Math.max(1, working.length));
        if (!node) throw new Error('nobody works on what is open');
        const status = (luck.next().value ?? 0) < 25 ? 'failed' : 'done';
        const actions = advance(graph, { kind: 'reply', id: node.id, try: node.tries, status });
        for (const action of actions) {
          if (action.kind === 'end') ended.push(action.id);
          if (action.kind === 'dispatch' && action.try === 1) {
            const { dependsOn } = graph.find(({ id }) => id === action.id) as GraphNode;
            for (const id of dependsOn) expect(ended).toContain(id);
            started.push(action.id);
          }
          if (action.kind === 'finish') last.push(action.status);
        }
        graph = applied(graph, actions);
      }
      expect(ended.toSorted()).toEqual(nodes.map(({ id }) => id).toSorted());
      expect(new Set(started).size).toBe(started.length);
      expect(last).toEqual([graph.some(({ state }) => state === 'failed') ? 'failed' : 'done']);
      for (const { tries } of graph) expect(tries).toBeLessThanOrEqual(triesPerRound);
    });
    holds(property, budget(2_000, 4_000));
  });
});

/** Writes a graph as `c<-a,b(skip) d`: what each depends on, and its policy. */
function graphOf(text: string): readonly GraphNode[] {
  return text.split(' ').map((word) => {
    const [, id = '', parents = '', onFailure = 'fail'] =
      /^(\w+)(?:<-([\w,]+))?(?:\((\w+)\))?$/.exec(word) ?? [];
    const dependsOn = parents === '' ? [] : parents.split(',');
    return {
      id,
      dependsOn,
      onFailure: onFailure as GraphNode['onFailure'],
      state: 'pending' as const,
      tries: 0,
    };
  });
}

/** Plays `go` and then these replies, and returns the graph and all actions as words. */
function played(text: string, ...words: readonly string[]) {
  let graph = graphOf(text);
  const said: string[] = [];
  const play = (event: GraphEvent) => {
    const actions = advance(graph, event);
    for (const action of actions)
      said.push(
        action.kind === 'finish'
          ? `finish ${action.status}`
          : `${action.kind === 'end' ? action.state : action.kind} ${action.id}`,
      );
    graph = applied(graph, actions);
  };
  play({ kind: 'go' });
  said.length = 0;
  for (const word of words) {
    const [kind = '', id = ''] = word.split(' ');
    if (kind === 'stop' || kind === 'reopen') play({ kind });
    else {
      const tries = graph.find((node) => node.id === id)?.tries ?? 0;
      const status = kind === 'ok' ? 'done' : 'failed';
      play({ kind: 'reply', id, try: tries, status, isFinal: kind === 'final' });
    }
  }
  return { graph, said, states: Object.fromEntries(graph.map((node) => [node.id, node.state])) };
}

describe('graphs that others got wrong', () => {
  it('starts a join once, after the longest of its branches', () => {
    const { said } = played('s a<-s b<-s c<-b d<-c j<-a,d', 'ok s', 'ok a', 'ok b', 'ok c', 'ok d');
    expect(said.filter((word) => word === 'dispatch j')).toHaveLength(1);
    expect(said.indexOf('dispatch j')).toBeGreaterThan(said.indexOf('done d'));
  });

  it('starts nothing below a diamond twice', () => {
    const { said } = played('a b<-a c<-a d<-b,c e<-d f<-e', 'ok a', 'ok b', 'ok c', 'ok d', 'ok e', 'ok f');
    for (const id of ['d', 'e', 'f'])
      expect(said.filter((word) => word === `dispatch ${id}`)).toHaveLength(1);
    expect(said.at(-1)).toBe('finish done');
  });

  it('runs a join whose other branch was skipped, and what is below it', () => {
    const { said, states } = played('a b(skip) j<-a,b k<-j', 'fails b', 'ok a', 'ok j', 'ok k');
    expect(said).toEqual([
      ...['skipped b', 'done a', 'dispatch j', 'done j', 'dispatch k', 'done k', 'finish done'],
    ]);
    expect(states).toMatchObject({ b: 'skipped', k: 'done' });
  });

  it('never starts what is two hops behind a failure, however tolerant it is itself', () => {
    const { said, states } = played('a b<-a c<-b(skip)', 'fails a');
    expect(said).toEqual(['failed a', 'skipped b', 'skipped c', 'finish failed']);
    expect(states).toEqual({ a: 'failed', b: 'skipped', c: 'skipped' });
  });

  it('lets a skipped node count like a done one for those behind those behind it', () => {
    const { said } = played('b(skip) d<-b c e<-c,d', 'ok c', 'fails b', 'ok d');
    expect(said).toEqual(['done c', 'skipped b', 'dispatch d', 'done d', 'dispatch e']);
  });

  it('ends all dependants of a failure in one step', () => {
    const dependants = Array.from({ length: 20 }, (_, n) => `d${n}<-a`).join(' ');
    const { graph, said } = played(`a ${dependants}`, 'fails a');
    expect(said).toHaveLength(22);
    expect(graph.filter(isOpen)).toEqual([]);
    expect(advance(graph, { kind: 'go' })).toEqual([]);
  });

  it('tries again under the same id, with the dependants still bound to it', () => {
    const { said, states } = played('a(retry) b<-a', 'fails a', 'fails a', 'ok a', 'ok b');
    expect(said).toEqual(['dispatch a', 'dispatch a', 'done a', 'dispatch b', 'done b', 'finish done']);
    expect(states).toEqual({ a: 'done', b: 'done' });
  });

  it('tries three times, and fails then', () => {
    const { said } = played('a(retry) b', 'fails a', 'fails a', 'fails a');
    expect(said).toEqual(['dispatch a', 'dispatch a', 'failed a', 'failed b', 'finish failed']);
  });

  it('touches no sibling when one is tried again, and starts none twice', () => {
    const { said } = played('a(retry) b c d e', 'ok b', 'fails a', 'ok c', 'fails a', 'ok d', 'ok e', 'ok a');
    expect(said.filter((word) => word.startsWith('dispatch'))).toEqual(['dispatch a', 'dispatch a']);
  });

  it('ends a node at work when another fails the task, one in its second try, too', () => {
    const { states, said } = played('f c(retry) z<-c', 'fails c', 'fails f');
    expect(states).toEqual({ f: 'failed', c: 'failed', z: 'skipped' });
    expect(said.at(-1)).toBe('finish failed');
  });

  it('tries nothing again that somebody has stopped', () => {
    expect(played('a(retry)', 'final a').said).toEqual(['failed a', 'finish failed']);
  });

  it('begins again with what has failed or never began, and keeps what is done', () => {
    const { states, said } = played('a b c<-b(skip) d<-a,c e(skip)', 'ok a', 'fails e', 'fails b', 'reopen');
    expect(said.slice(-4)).toEqual(['reopen b', 'reopen c', 'reopen d', 'dispatch b']);
    expect(states).toMatchObject({ a: 'done', b: 'dispatched', c: 'pending', d: 'pending', e: 'skipped' });
  });

  it('begins again with what was to begin again when the task was stopped', () => {
    const stopped = advance([{ id: 'a', dependsOn: [], onFailure: 'fail', state: 'pending', tries: 1 }], {
      kind: 'stop',
    });
    expect(stopped).toEqual([
      { kind: 'end', id: 'a', state: 'failed' },
      { kind: 'finish', status: 'stopped' },
    ]);
  });

  it('only asks for the answer again when all nodes are done', () => {
    expect(played('a b<-a', 'ok a', 'ok b', 'reopen').said.slice(-2)).toEqual(['finish done', 'finish done']);
  });

  it.each(['pending', 'dispatched', 'done', 'failed', 'skipped'] as const)(
    'has something to do, or nothing left, in each state of two parents: %s',
    (first) => {
      for (const second of ['pending', 'dispatched', 'done', 'failed', 'skipped'] as const) {
        const parent = (id: string, state: GraphNode['state']) =>
          ({ id, state, dependsOn: [], onFailure: 'skip', tries: state === 'pending' ? 0 : 1 }) as const;
        const child = {
          id: 'c',
          dependsOn: ['a', 'b'],
          onFailure: 'fail',
          state: 'pending',
          tries: 0,
        } as const;
        const graph = [parent('a', first), parent('b', second), child];
        // A failure and an open node never meet: the failure ends all.
        if ([first, second].includes('failed')) continue;
        const isAtWork = [first, second].includes('dispatched');
        expect(advance(graph, { kind: 'go' }).length > 0 || isAtWork).toBe(true);
      }
    },
  );
});

describe('what is no graph', () => {
  const problemOf = (text: string) => graphProblem(graphOf(text));

  it.each([
    ['a<-b b<-a c', /a → b → a|b → a → b/],
    ['a<-a', /a → a/],
    ['a b<-later', /"b" depends on "later", which is none of the subtasks: a, b\./],
    ['a a', /Two subtasks have the id "a"/],
    ['a b<-a c<-b,e d<-c e<-d', /wait for each other: (c → e → d → c|e → d → c → e|d → c → e → d)\./],
  ])('says what is wrong with %s', (text, message) => {
    expect(problemOf(text)).toMatch(message);
  });

  it.each(['a', 'a b<-a c<-a d<-b,c', 'c<-a,b b<-a a', 'a<-b,b b'])('takes %s', (text) => {
    expect(problemOf(text)).toBeUndefined();
  });

  it('names few of the nodes of a long cycle, and few of many ids', () => {
    const nodes = Array.from({ length: 200 }, (_, n) => ({
      id: `node-${n}`,
      dependsOn: [`node-${(n + 1) % 200}`],
    }));
    expect(graphProblem(nodes)?.length).toBeLessThan(300);
    const [first, ...others] = nodes.map(({ id }) => ({ id, dependsOn: [] as string[] }));
    expect(graphProblem([{ ...first, id: 'x', dependsOn: ['y'] }, ...others])?.length).toBeLessThan(500);
  });

  it('finds each cycle, and nothing else', () => {
    const property = fc.property(graphs(60), fc.nat(59), fc.nat(59), (nodes, from, to) => {
      const [low, high] = [from % nodes.length, to % nodes.length].toSorted((a, b) => a - b);
      expect(graphProblem(nodes.toReversed())).toBeUndefined();
      const closed = nodes.map((node, n) =>
        n === low ? { ...node, dependsOn: [...node.dependsOn, `n${high}`] } : node,
      );
      const reaches = (id: string, seen = new Set<string>()): Set<string> => {
        for (const next of closed.find((node) => node.id === id)?.dependsOn ?? [])
          if (!seen.has(next)) reaches(next, seen.add(next));
        return seen;
      };
      const isCyclic = closed.some(({ id }) => reaches(id).has(id));
      const problem = graphProblem(closed);
      expect(problem !== undefined).toBe(isCyclic);
      const way = /: (.+)\. Remove/.exec(problem ?? '')?.[1]?.split(' → ') ?? [];
      if (way.includes('…')) return;
      for (const [n, id] of way.slice(0, -1).entries())
        expect(closed.find((node) => node.id === id)?.dependsOn).toContain(way[n + 1]);
    });
    holds(property, budget(2_000, 2_000));
  });
});

describe('large graphs', () => {
  const size = 10_000;
  const node = (n: number, dependsOn: readonly string[]): ModelNode => ({
    id: `n${n}`,
    dependsOn,
    onFailure: 'fail',
  });
  const range = (length: number) => Array.from({ length }, (_, n) => n);
  const many: Readonly<Record<string, (length: number) => readonly ModelNode[]>> = {
    chain: (length) => range(length).map((n) => node(n, n === 0 ? [] : [`n${n - 1}`])),
    fan: (length) => range(length).map((n) => node(n, n === 0 ? [] : ['n0'])),
    ring: (length) => range(length).map((n) => node(n, [`n${(n + length - 1) % length}`])),
    join: (length) =>
      range(length).map((n) => node(n, n < length - 1 ? [] : range(length - 1).map((k) => `n${k}`))),
  };

  /** Plays what the shape's graph of that many nodes needs time for; a text's length stands for the number. */
  const playing = (shape: string) => {
    const graphOfSize = remembered((length: number) => {
      const graph = fresh(many[shape]?.(length) ?? []);
      return { graph, begun: applied(graph, advance(graph, { kind: 'go' })) };
    });
    return {
      textOf: (length: number) => ' '.repeat(length),
      run: ({ length }: string) => {
        const { graph, begun } = graphOfSize(length);
        const last = {
          kind: 'reply',
          id: begun.find(({ state }) => state === 'dispatched')?.id ?? '',
          try: 1,
        } as const;
        return [
          graphProblem(graph),
          advance(begun, { ...last, status: 'done' }),
          advance(begun, { ...last, status: 'failed' }),
          advance(begun, { kind: 'stop' }),
        ];
      },
    };
  };

  it.each(Object.keys(many))('takes time in proportion to the nodes: %s', (shape) => {
    expect(growthOf(playing(shape), size)).not.toMatchObject({ kind: 'steep' });
  });

  it('finds a cycle of 10,000 nodes', () => {
    expect(graphProblem(many.ring?.(size) ?? [])).toContain('wait for each other');
  });
});

/** Returns the function with its results kept, so that making a graph isn't measured. */
function remembered<Result>(make: (length: number) => Result): (length: number) => Result {
  const made = new Map<number, Result>();
  return (length) => {
    const known = made.get(length) ?? make(length);
    made.set(length, known);
    return known;
  };
}

import type { Mutant } from './mutants.ts';

const children = 'test/store/children/children.test.ts';

/** Broken variants of sub-agents. */
export const childMutants: readonly Mutant[] = [
  {
    name: 'children counted before the lock',
    invariant: 'a parent never has more live children than it may',
    edit: {
      in: 'spawnChild',
      find: 'await lockLaneAt(tx, input.laneKey, input.epoch);',
      replace: 'await Promise.resolve(lockLaneAt);',
    },
    test: { file: children, name: 'is never beyond the limit when many are spawned at once' },
    needsPostgres: true,
  },
  {
    name: 'finish and announcement in two transactions',
    invariant: 'a child has ended only if its parent is told in the same commit',
    edit: {
      in: 'finishChild',
      find: 'const told = await notifyParent(tx, { child: known, report }, effects);',
      replace:
        "const told = 'lane' as ChildTold; const tellLater = () => notifyParent(tx, { child: known, report }, effects); void tellLater;",
    },
    test: { file: children, name: 'is announced to its parent once' },
    isSample: true,
  },
  {
    name: 'completion dropped by the cap',
    invariant: 'no cap drops what a child has found',
    edit: {
      in: 'enforceCap',
      find: "row.kind === 'message' && row.source === 'platform'",
      replace: "row.kind === 'message'",
    },
    test: { file: children, name: 'is announced into a lane at its cap' },
  },
  {
    name: 'stop without locks',
    invariant: 'a child that is spawned as its tree is stopped is stopped too',
    edit: {
      in: 'lockLevel',
      find: `await lockLanes(
    tx,
    seen.map(({ laneKey }) => laneKey),
  );`,
      replace: 'await Promise.resolve(lockLanes);',
    },
    test: { file: children, name: 'is caught by /stop or refused' },
    needsPostgres: true,
  },
  {
    name: 'one child too many in a class',
    invariant: 'a class never has more lanes at work than it may, over all processes',
    edit: { in: 'hasRoom', find: 'return running < cap;', replace: 'return running <= cap;' },
    test: { file: children, name: 'waits for a place in its class' },
  },
  {
    name: 'spawned by a run that was asked to stop',
    invariant: 'a run that was asked to stop begins nothing more',
    edit: { in: 'spawnChild', find: 'await assertRunActive(tx, input.runId);', replace: '' },
    test: { file: children, name: 'is spawned by no run that was asked to stop' },
  },
  {
    name: 'sub-agent on the model of its agent, whatever was asked for',
    invariant: 'a sub-agent answers with the model that it was spawned with',
    edit: { in: 'openSession', find: 'model: input.model ?? null,', replace: 'model: null,' },
    test: { file: 'test/subagents/sub-agent-tools.test.ts', name: 'give the sub-agent the model' },
  },
  {
    name: 'woken while its class is full',
    invariant: 'the sweep wakes no lane that could not be claimed',
    edit: { in: 'readFullClasses', find: 'if (running >= cap)', replace: 'if (running > cap)' },
    test: { file: children, name: 'leaves its place to the next' },
  },
  {
    name: 'lease renewed while its class is counted',
    invariant: 'a lease that was counted as over never comes back',
    edit: {
      in: 'renewLeases',
      find: 'await lockClassesOf(tx, lanes);',
      replace: 'await Promise.resolve(lockClassesOf);',
    },
    test: { file: children, name: 'is not renewed past its end while its class is counted' },
    needsPostgres: true,
  },
  {
    name: 'former lane of a /stop locked after the other',
    invariant: 'a step that changes several lanes locks them in one order',
    edit: {
      in: 'lockForStop',
      find: '{ lanes: linked ? [{ key: linked.formerLane }] : [] }',
      replace: '{}',
    },
    test: { file: 'test/store/base/lock-order.test.ts', name: 'locks them in key order' },
    needsPostgres: true,
  },
  {
    name: 'announcements outlive a reset',
    invariant: 'after /new nobody hears what an earlier session has asked for',
    edit: { in: 'dropAnnouncements', find: 'announced.map(({ id }) => id)', replace: '[]' },
    test: { file: children, name: 'is not heard by the session after a /new' },
  },
];

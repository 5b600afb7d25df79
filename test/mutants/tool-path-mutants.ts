import type { Mutant } from './mutants.ts';

const resume = 'test/agent/resume.test.ts';

/** Broken variants of the one path that every tool call takes, new or found after a crash. */
export const toolPathMutants: readonly Mutant[] = [
  {
    name: 'permission skipped on resume',
    invariant: 'a call that a crash left open runs only if it may run now',
    edit: {
      in: 'prepareCall',
      find: 'const permission = await askPermission(call, tool, using);',
      replace:
        "const permission: Permission = using.open ? { kind: 'yes' } : await askPermission(call, tool, using);",
    },
    test: { file: resume, name: 'is not run when it is denied now' },
    isSample: true,
  },
  {
    name: 'loop guard without memory on resume',
    invariant: 'a crash gives no model a new allowance of identical calls',
    edit: {
      in: 'runAgentLoop',
      find: 'for (const call of resumption.earlier) run.guard.admit(call);',
      replace: '',
    },
    test: { file: resume, name: 'remembers the calls of all its earlier turns' },
  },
  {
    name: 'misspelt argument left out',
    invariant: 'a call is made as it was written, or not at all',
    edit: {
      in: 'argumentProblem',
      find: 'additionalProperties !== false',
      replace: 'additionalProperties !== true',
    },
    test: { file: 'test/agent/tool-batch.test.ts', name: 'be it a misspelt one' },
  },
  {
    name: 'rest of a denied batch run on resume',
    invariant: 'nothing further of a batch runs once a call of it was denied',
    edit: { in: 'prepareKnown', find: "...(wasDenied(state.result) && { halt: 'denied' }),", replace: '' },
    test: { file: resume, name: 'runs nothing of a batch that was denied before' },
  },
  {
    name: 'started call called cancelled',
    invariant: 'of a call that may have had its effect nothing is said but that',
    edit: { in: 'withhold', find: 'return prepareKnown(call, using) ??', replace: 'return' },
    test: { file: resume, name: 'says of a started call behind a denied one' },
  },
  {
    name: 'started call that may run again called cancelled',
    invariant: 'a call that had started is never said not to have run, whatever keeps it from running again',
    edit: { in: 'prepareCall', find: 'hasBegun ? begunText(text) : text', replace: 'text' },
    test: { file: resume, name: 'is not run when its run is stopped' },
  },
  {
    name: 'tool speaks for a stopped run',
    invariant: 'a run that was asked to stop says nothing more, by no tool either',
    edit: { in: 'storeToolParts', find: 'await assertRunActive(tx, input.runId);', replace: '' },
    test: {
      file: 'test/store/delivery/tool-parts.test.ts',
      name: 'is not stored once its run was asked to stop',
    },
  },
  {
    name: 'a workspace whose calls have no bound',
    invariant: 'a disk that is gone never takes all threads of the process',
    edit: {
      in: 'DiskGate',
      find: 'return disk.running < mostOfOne && this.#all.running < most;',
      replace: 'void [disk, most, mostOfOne]; return true;',
    },
    test: { file: 'test/processes/disk-gate.test.ts', name: 'hold three threads at most' },
  },
  {
    name: 'a disk that stays refused',
    invariant: 'a disk that answers again is used again, without a restart',
    edit: { in: 'DiskGate', find: 'disk.overdue -= 1;', replace: '' },
    test: { file: 'test/processes/disk-gate.test.ts', name: 'that one again once its calls return' },
  },
];

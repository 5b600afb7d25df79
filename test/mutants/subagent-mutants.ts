import type { Mutant } from './mutants.ts';

const policy = 'test/subagents/tool-policy.test.ts';

/** Of what a sub-agent may use, and of its silence. */
export const subagentMutants: readonly Mutant[] = [
  {
    name: 'profile of a sub-agent as it was asked for',
    invariant: 'a sub-agent has no tool that the one above it lacks',
    edits: [{ in: 'childRole', find: "parent?.profile === 'task' ? 'task' : profile", replace: 'profile' }],
    test: { file: policy, name: 'are never more than those of the one above it' },
    isSample: true,
  },
  {
    name: 'allow list that widens a role',
    invariant: 'an allow list only narrows the tools of a sub-agent',
    edits: [
      {
        in: 'mayUseTool',
        find: 'if (role === undefined) return true;',
        replace: 'if (role === undefined || allow !== undefined) return true;',
      },
    ],
    test: { file: policy, name: 'only get fewer by an allow list' },
  },
  {
    name: 'deepest level that may spawn',
    invariant: 'a sub-agent at the deepest level has no tool to start others',
    edits: [{ in: 'childRole', find: 'depth >= maxSpawnDepth', replace: 'depth > maxSpawnDepth' }],
    test: { file: policy, name: 'lack what is denied' },
  },
  {
    name: 'ANNOUNCE_SKIP silent anywhere',
    invariant: 'ANNOUNCE_SKIP is silence only in a run that has taken an announcement',
    edits: [
      {
        in: 'silenceContextOf',
        find: "(await store.read(readAnnounced, { runId })) ? 'announce' : 'chat'",
        replace: "'announce'",
      },
    ],
    test: { file: 'test/runs/silence.test.ts', name: 'is ordinary text anywhere else' },
  },
];

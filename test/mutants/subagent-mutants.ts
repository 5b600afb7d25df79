import type { Mutant } from './mutants.ts';

const command = 'test/inbound/subagents-command.test.ts';
const policy = 'test/subagents/tool-policy.test.ts';

/** Broken variants of what a sub-agent may use, and of its silence. */
export const subagentMutants: readonly Mutant[] = [
  {
    name: 'profile of a sub-agent as it was asked for',
    invariant: 'a sub-agent has no tool that the one above it lacks',
    edit: { in: 'childRole', find: "parent?.profile === 'task' ? 'task' : profile", replace: 'profile' },
    test: { file: policy, name: 'are never more than those of the one above it' },
    isSample: true,
  },
  {
    name: 'allow list that widens a role',
    invariant: 'an allow list only narrows the tools of a sub-agent',
    edit: {
      in: 'mayUseTool',
      find: 'if (role === undefined) return true;',
      replace: 'if (role === undefined || allow !== undefined) return true;',
    },
    test: { file: policy, name: 'only get fewer by an allow list' },
  },
  {
    name: 'deepest level that may spawn',
    invariant: 'a sub-agent at the deepest level has no tool to start others',
    edit: { in: 'childRole', find: 'depth >= maxSpawnDepth', replace: 'depth > maxSpawnDepth' },
    test: { file: policy, name: 'lack what is denied' },
  },
  {
    name: 'ANNOUNCE_SKIP silent anywhere',
    invariant: 'ANNOUNCE_SKIP is silence only in a run that has taken an announcement',
    edit: {
      in: 'silenceContextOf',
      find: "(await store.read(readAnnounced, { runId })) ? 'announce' : 'chat'",
      replace: "'announce'",
    },
    test: { file: 'test/runs/silence.test.ts', name: 'is ordinary text anywhere else' },
  },
  {
    name: 'sub-agents directed by anybody in a group',
    invariant: "in a group only a sub-agent's starter, an administrator or the owner directs it",
    edit: {
      in: 'subagents',
      find: "request?.kind === 'list' ? 'allowed' : 'own'",
      replace: "request?.kind === 'list' ? 'allowed' : 'allowed'",
    },
    test: { file: command, name: 'lets only its starter, an admin or the owner direct one' },
    isSample: true,
  },
  {
    name: 'everybody the starter of a sub-agent',
    invariant: 'the starter of a sub-agent is who sent a message of the run at the top of its tree',
    edit: {
      in: 'hasStarted',
      find: '.some((ref) => own.has(ref))',
      replace: '.some((ref) => ref !== [...own].join(" ") || true)',
    },
    test: { file: command, name: 'lets only its starter, an admin or the owner direct one' },
  },
  {
    name: 'sub-agent steered with lesser rights',
    invariant: 'nobody directs a sub-agent that has more rights',
    edit: { in: 'mayDirect', find: '=== child.authority', replace: '!== undefined' },
    test: { file: command, name: 'refuses a message whose sender has lesser rights' },
  },
  {
    name: 'sub-agent whose result is the note that it started another',
    invariant: 'a result says something of the task, in plain words',
    edit: { in: 'resultTextOf', find: '&& !isBookkeeping(part.data)', replace: '' },
    test: { file: 'test/subagents/result-text.test.ts', name: 'never the note' },
  },
];

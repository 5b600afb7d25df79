import type { Mutant } from './mutants.ts';

const targets = 'test/store/delivery/tool-target.test.ts';

/** Of what the `message` tool does beyond sending a text. */
export const messageMutants: readonly Mutant[] = [
  {
    name: 'message of another conversation quoted',
    invariant: 'an agent refers to no message but those of the conversation it speaks in',
    edit: {
      in: 'isHeard',
      find: ".where('conversationKey', '=', conversationKey)\n.where('messageId', '=', id)\n.where('laneKey', '=', laneKey)\n.executeTakeFirst();\nif (item) return true;",
      replace:
        ".where('messageId', '=', id)\n.executeTakeFirst();\nif (item) return true;\nvoid [conversationKey, laneKey];",
    },
    test: { file: targets, name: 'is quoted in no other conversation' },
  },
  {
    name: 'refused change of a tool said as a message',
    invariant: 'what an agent wanted to change and the network refused is said by nobody, but for the agent',
    edit: { in: 'mendOf', find: "if (purpose === 'tool') return undefined;", replace: 'void purpose;' },
    test: { file: targets, name: 'nothing is said instead' },
  },
  {
    name: 'change of a message in a group with new ids',
    invariant: 'a group that has another id has other messages under the ids it had before',
    edit: { in: 'moveConversation', find: "part.purpose === 'tool'", replace: "part.purpose === ''" },
    test: { file: targets, name: 'has another id once its group has' },
  },
  {
    name: 'foreign message edited',
    invariant: 'an agent changes no message but its own of the conversation it speaks in',
    edit: { in: 'findOwn', find: ".where('outbox.laneKey', '=', laneKey)", replace: '' },
    also: [{ in: 'findOwn', find: ".where('receipts.conversationKey', '=', conversationKey)", replace: '' }],
    test: { file: targets, name: 'only if the agent has sent it there' },
  },
  {
    name: 'notice edited by the agent',
    invariant: 'what Parley itself asks and says, approvals above all, no agent can word anew',
    edit: { in: 'findOwn', find: ".where('outbox.purpose', 'in', ['reply', 'tool'])", replace: '' },
    test: { file: targets, name: 'only if the agent has sent it there' },
  },
  {
    name: 'edit by a stranger',
    invariant: 'what others rely on is changed for nobody who is only a guest',
    edit: { in: 'findChangeable', find: 'own.runId !== place.onlyRun', replace: 'own.runId === null' },
    test: { file: targets, name: 'is changed for a guest only if this very run has sent it' },
  },
];

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
];

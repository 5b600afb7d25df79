import { type Additions, bigint, text } from './notation.ts';

/** Agents that were chosen in chat for a conversation or one of its threads. */
export const addBindings = {
  tables: {
    bindings: {
      columns: { conversationKey: text, thread: text, agentId: text, setBy: text, setAt: bigint },
      key: ['conversationKey', 'thread'],
    },
  },
} satisfies Additions;

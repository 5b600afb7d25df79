/** The answer to a command that doesn't exist. It isn't in the list of commands, so nobody can type it. */
import { fillText } from '../texts/chat-texts.ts';
import { anyone, asRequested, chatCommand, type Order } from './chat-command.ts';

type Unknown = {
  /** As it was typed. */
  readonly name: string;
  /** The command that was probably meant. */
  readonly meant?: string | undefined;
};

export const unknown = chatCommand({
  name: 'unknown',
  menu: 'commandUnknown',
  // It may be a misspelled /pair.
  mayHaveCode: true,
  parse: (name): Unknown => ({ name }),
  right: anyone,
  load: asRequested<Unknown>,
  apply: async (_tx, _scene, facts) => facts,
  say: ({ name, meant }, texts) =>
    fillText(meant === undefined ? texts.commandUnknown : texts.commandMeant, { name, meant }),
});

/** Returns an order that tells the sender that there is no such command. */
export function unknownOrder(request: Unknown, inGroups: NonNullable<Order['inGroups']>): Order {
  return { ...unknown.orderOf(request), inGroups };
}

/**
 * The one rule about whose words an event carries: only words typed by its sender can be a command or call the bot by
 * name. Everything else is data, which the model may read and nothing obeys. Nothing else in intake turns an event into
 * a command.
 */
import type { InboundEvent } from '#contracts/envelope.ts';
import { isTyped } from '#contracts/provenance.ts';
import type { Order } from '../commands/chat-command.ts';
import { parseCommand, stopOrder } from '../commands/list.ts';

/** Returns the command that an event gives; undefined if it is none, whatever it looks like. */
export function readOrder(event: InboundEvent, bot: { readonly name?: string }): Order | undefined {
  if (event.kind === 'stop') return stopOrder();
  return event.kind === 'message' && isTyped(event) ? parseCommand(event.text, bot) : undefined;
}

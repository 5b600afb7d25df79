/**
 * The one rule about whose words an event carries: only what its sender typed can be a command, or call
 * the bot by name. Everything else is data, for the model to read and for nobody to obey. Nothing else in
 * the intake turns an event into a command.
 */
import type { InboundEvent } from '#contracts/envelope.ts';
import { isTyped } from '#contracts/provenance.ts';
import type { Order } from '../commands/chat-command.ts';
import { parseCommand, stopOrder } from '../commands/list.ts';

/** The command that an event is; undefined for everything that is none, whatever it reads like. */
export function readOrder(event: InboundEvent, bot: { readonly name?: string }): Order | undefined {
  if (event.kind === 'stop') return stopOrder();
  return event.kind === 'message' && isTyped(event) ? parseCommand(event.text, bot) : undefined;
}

import type { AskedCommand } from '#contracts/outbound.ts';
import type { CommandDeps } from '../commands/chat-command.ts';
import { newRowId } from '../store/base/row-id.ts';
import type { Decision, Proposal } from '../store/intake/proposal.ts';
import type { NewItem } from '../store/items/new-item.ts';
import type { CommandArrival } from './propose.ts';
import { contentOf, emptyMessage } from './stored-content.ts';

/** Loads the input of a command. The command acts with the commit, or waits as an item in its lane's order. */
export async function decideCommand(deps: CommandDeps, arrival: CommandArrival): Promise<Proposal> {
  const { order, call, event } = arrival;
  const input = await order.load(deps, call);
  const isItem = order.command.order === 'lane' && order.problem === undefined;
  const decision: Decision = isItem
    ? { kind: 'accept', item: itemOf(arrival, input) }
    : {
        kind: 'command',
        command: order.command.name,
        input,
        asked: askedIn(arrival),
        lane: call.lane,
        route: call.envelope.route,
      };
  return { ...event, decision };
}

/** Longest command that is kept, in UTF-16 units. */
const maxAskedLength = 500;

/** Returns a command of a direct chat as it was written; one that may contain a code without its words. */
function askedIn({ order, call: { envelope } }: CommandArrival): AskedCommand | undefined {
  const { event, chat, sender } = envelope;
  if (chat.kind !== 'dm' || event.kind !== 'message') return undefined;
  const written = order.command.mayHaveCode ? event.text.replace(/\s[\s\S]*$/, '') : event.text;
  const text = written.slice(0, maxAskedLength).toWellFormed();
  return { messageId: event.messageId, name: sender.name, text };
}

function itemOf({ order, call }: CommandArrival, input: unknown): NewItem {
  const { envelope, lane, authority } = call;
  const text = envelope.event.kind === 'message' ? envelope.event.text : '';
  return {
    id: newRowId(),
    kind: 'command',
    lane,
    route: envelope.route,
    authority,
    content: {
      ...contentOf(envelope, { ...emptyMessage, text }),
      command: {
        name: order.command.name,
        input,
        ...(order.command.abortsRun && { abortsRun: true }),
      },
    },
    passesGate: true,
    contextLimit: 0,
  };
}

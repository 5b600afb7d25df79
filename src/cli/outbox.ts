import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { StoreCommand } from '../store/base/command.ts';
import {
  dropPart,
  type OperatorResult,
  readUndelivered,
  retryPart,
  type UndeliveredPart,
} from '../store/delivery/operator-actions.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';
import { withStore } from './with-store.ts';

/** Lists undelivered parts. */
export async function listUndelivered(): Promise<CommandOutput> {
  const parts = await withStore((store) => store.read(readUndelivered, { limit: 200 }), configForReading());
  const lines = parts.length === 0 ? ['No undelivered messages.'] : parts.map(lineOf);
  return { result: parts, lines };
}

function lineOf({ key, state, conversation, attempts, problem, excerpt }: UndeliveredPart): string {
  const reason = problem === undefined ? '' : ` (${problem})`;
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  return `${key}  ${state}${reason}  ${conversation}  ${tries}  “${excerpt}”`;
}

export const resendPart = (key: string) => operate(retryPart, key, 'will be sent again');
export const giveUpPart = (key: string) => operate(dropPart, key, 'has been dropped');

async function operate(
  command: StoreCommand<{ readonly key: string }, OperatorResult>,
  key: string,
  done: string,
): Promise<CommandOutput> {
  const operated = await withStore((store) => store.write(command, { key }));
  if (operated === 'done') return { result: { key }, lines: [`${key} ${done}.`] };
  const why = operated === 'not-found' ? "isn't in the outbox" : "can't be changed in its state";
  throw new ParleyError('invalid_input', `${key} ${why}. See: ${parleyCommand} outbox list`);
}

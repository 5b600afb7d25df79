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
import type { ExitCode } from './exit-code.ts';
import { printResult } from './print.ts';
import { withStore } from './with-store.ts';

export async function runOutboxList({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const parts = await withStore((store) => store.read(readUndelivered, { limit: 200 }));
  const lines = parts.length === 0 ? ['No undelivered messages.'] : parts.map(lineOf);
  printResult({ asJson, result: parts, lines });
  return 0;
}

function lineOf({ key, state, conversation, attempts, problem, excerpt }: UndeliveredPart): string {
  const reason = problem === undefined ? '' : ` (${problem})`;
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  return `${key}  ${state}${reason}  ${conversation}  ${tries}  “${excerpt}”`;
}

type ChangeOptions = { readonly key: string; readonly asJson: boolean };

export const runOutboxRetry = (options: ChangeOptions): Promise<ExitCode> =>
  operate(retryPart, 'will be sent again', options);
export const runOutboxDrop = (options: ChangeOptions): Promise<ExitCode> =>
  operate(dropPart, 'is given up', options);

async function operate(
  command: StoreCommand<{ readonly key: string }, OperatorResult>,
  done: string,
  { key, asJson }: ChangeOptions,
): Promise<ExitCode> {
  const operated = await withStore((store) => store.write(command, { key }));
  if (operated === 'done') {
    printResult({ asJson, result: { key }, lines: [`${key} ${done}.`] });
    return 0;
  }
  const why = operated === 'not-found' ? "isn't in the outbox" : "can't be changed in its state";
  throw new ParleyError('invalid_input', `${key} ${why}. See: ${parleyCommand} outbox list`);
}

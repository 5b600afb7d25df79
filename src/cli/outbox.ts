import type { z } from 'zod';
import * as outbox from '../operations/outbox.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';

/** Lists undelivered parts. */
export async function listUndelivered(): Promise<CommandOutput> {
  const { parts } = await callOperation(outbox.listOutbox, {});
  return { result: parts, lines: parts.length === 0 ? ['No undelivered messages.'] : parts.map(lineOf) };
}

type Part = z.output<typeof outbox.listOutbox.answer>['parts'][number];

function lineOf({ key, state, conversation, attempts, problem, excerpt }: Part): string {
  const reason = problem === undefined ? '' : ` (${problem})`;
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  return `${key}  ${state}${reason}  ${conversation}  ${tries}  “${excerpt}”`;
}

export async function resendPart(key: string): Promise<CommandOutput> {
  await callOperation(outbox.resendPart, { key });
  return { result: { key }, lines: [`${key} will be sent again.`] };
}

export async function giveUpPart(key: string): Promise<CommandOutput> {
  await callOperation(outbox.giveUpPart, { key });
  return { result: { key }, lines: [`${key} has been dropped.`] };
}

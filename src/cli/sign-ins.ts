import { parleyCommand } from '#channel-kit/own-commands.ts';
import { localTime } from '#channel-kit/time-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import * as operations from '../operations/sign-ins.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';

/** Lists the browsers signed in with this data folder's token. */
export async function listSignIns(): Promise<CommandOutput> {
  const { signIns } = await callOperation(operations.listSignIns, {});
  const lines = signIns.map(({ id, browser, createdAt, lastSeenAt }) =>
    [id, browser, `signed in ${localTime(createdAt)}`, `last seen ${localTime(lastSeenAt)}`].join('  '),
  );
  const result = signIns.map(({ isThis: _, ...signIn }) => signIn);
  return { result, lines: lines.length === 0 ? ['No browser is signed in.'] : lines };
}

/** Signs browsers out, and closes their connections. */
export async function endBrowsers(which: {
  readonly id?: string;
  readonly isAll: boolean;
}): Promise<CommandOutput> {
  const { id, isAll } = which;
  const list = `${parleyCommand} sign-ins list`;
  if ((id === undefined) !== isAll)
    throw new ParleyError('invalid_input', `Give the id of one sign-in (${list}), or --all.`);
  const { ids } = await callOperation(operations.endSignIns, id === undefined ? { others: true } : { id });
  if (id !== undefined && ids.length === 0)
    throw new ParleyError('invalid_input', `No browser is signed in as ${id}. See: ${list}`);
  const what = ids.length === 1 ? '1 browser' : `${ids.length} browsers`;
  return { result: { ended: ids }, lines: [`Signed ${what} out.`] };
}

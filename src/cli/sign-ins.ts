import { parleyCommand } from '#channel-kit/own-commands.ts';
import { localTime } from '#channel-kit/time-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import { issuerOf } from '../server/sign-ins.ts';
import { endSignIns, readSignIns } from '../store/sign-ins/sign-ins.ts';
import { tokenOf } from './ask-gateway.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';
import { withStore } from './with-store.ts';

/** Lists the browsers signed in with this data folder's token. */
export async function listSignIns(): Promise<CommandOutput> {
  const config = configForReading();
  const issuer = issuerOf(await tokenOf(config));
  const signIns = await withStore((store) => store.read(readSignIns, { issuer, at: Date.now() }), config);
  const lines = signIns.map(({ id, browser, createdAt, lastSeenAt }) =>
    [id, browser, `signed in ${localTime(createdAt)}`, `last seen ${localTime(lastSeenAt)}`].join('  '),
  );
  return { result: signIns, lines: lines.length === 0 ? ['No browser is signed in.'] : lines };
}

/** Signs browsers out. A running gateway closes their connections within a second. */
export async function endBrowsers(which: {
  readonly id?: string;
  readonly isAll: boolean;
}): Promise<CommandOutput> {
  const { id, isAll } = which;
  if ((id === undefined) !== isAll) {
    throw new ParleyError(
      'invalid_input',
      `Give the id of one sign-in (${parleyCommand} sign-ins list), or --all.`,
    );
  }
  const config = loadConfig();
  const issuer = issuerOf(await tokenOf(config));
  const input = id === undefined ? { issuer } : { issuer, id };
  const ended = await withStore((store) => store.write(endSignIns, input), config);
  if (id !== undefined && ended.length === 0) {
    throw new ParleyError(
      'invalid_input',
      `No browser is signed in as ${id}. See: ${parleyCommand} sign-ins list`,
    );
  }
  const what = ended.length === 1 ? '1 browser' : `${ended.length} browsers`;
  return { result: { ended }, lines: [`Signed ${what} out.`] };
}

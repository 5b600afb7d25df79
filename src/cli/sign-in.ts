import { parleyCommand } from '#channel-kit/own-commands.ts';
import { localTime } from '#channel-kit/time-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import { isInteractive } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import * as operations from '../operations/sign-ins.ts';
import { issueSignInLinks, type SignInLinks } from '../operations/sign-ins.ts';
import { isWildcard } from '../server/allowed-origins.ts';
import { askRunning, askRunningGateway } from './ask-gateway.ts';
import { callOperation } from './call-operation.ts';
import type { ExitCode } from './exit-code.ts';
import type { CommandOutput } from './print.ts';
import { renderQrCode } from './qr-code.ts';

/** Prints a fresh link of the running gateway, which opens one session, once, within 15 minutes. */
export async function runSignIn({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const config = loadConfig();
  const links = await askRunning(await askRunningGateway(config), config, issueSignInLinks, {});
  const shown = { hasScreen: isInteractive(), host: config.host };
  process.stdout.write(asJson ? `${JSON.stringify(links, undefined, 2)}\n` : describeLinks(links, shown));
  return 0;
}

type Shown = {
  /** Also shows the phone's link as a QR code. */
  readonly hasScreen: boolean;
  /** The address on which Parley is configured to listen. */
  readonly host: string;
};

/** Formats the links as text. */
export function describeLinks({ url, phoneUrl }: SignInLinks, shown: Shown): string {
  const here = `Open this in a browser (works once, for 15 minutes):\n\n  ${url}\n`;
  if (phoneUrl === undefined) return `${here}\n${phoneHint(shown.host)}\n`;
  const code = shown.hasScreen ? `${renderQrCode(phoneUrl)}\n` : '';
  return `${here}\nOn a phone on the same network:\n\n${code}  ${phoneUrl}\n`;
}

function phoneHint(host: string): string {
  return isWildcard(host)
    ? "On a phone, use this machine's address instead of 127.0.0.1. Parley can't tell what it is, for example in a container."
    : "A phone can't reach this address. To allow that, set PARLEY_HOST=0.0.0.0 and restart Parley.";
}

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

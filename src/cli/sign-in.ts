import { isInteractive } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import { issueSignInLinks, type SignInLinks } from '../operations/sign-ins.ts';
import { isWildcard } from '../server/page-address.ts';
import { askRunning, askRunningGateway } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';
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

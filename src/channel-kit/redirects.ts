/**
 * One rule for all that leaves this machine: nothing follows a redirect to another host. The first server would decide
 * who reads the conversation and its secrets, and a send that somebody else answered would count as sent.
 */

/** How often a download may be redirected within its host. */
export const maxRedirects = 5;

/** The error of a call that was redirected. The call itself has had no effect. */
export class RedirectRefused extends Error {
  /** For `network-fault.ts`: the message arrived nowhere that counts. */
  readonly code = 'ERR_REDIRECTED';

  constructor(from: URL, location: string) {
    super(sentenceOf(originOf(from), originIn(location, from)));
    this.name = 'RedirectRefused';
  }
}

/** Throws RedirectRefused if an answer redirects. */
export function refuseRedirect(
  from: string,
  { status, location }: { readonly status: number; readonly location: string | null | undefined },
): void {
  if (isRedirect(status)) throw new RedirectRefused(new URL(from), location ?? '');
}

function sentenceOf(from: string, to: string | undefined): string {
  const what = `the server at ${from} redirects to`;
  if (to === undefined) return `${what} an invalid address; check the address that is configured`;
  if (to === from)
    return `${what} another path of its own, which isn’t followed; check the path of the address that is configured`;
  return `${what} ${to}, which isn’t followed; if you trust it, set ${to} in place of ${from}`;
}

/** Says whether a status redirects. */
export function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

/** Returns where a download may continue: the same host, never from TLS to plain text. Undefined: nowhere. */
export function redirectWithin(from: URL, location: string): URL | undefined {
  if (!URL.canParse(location, from.href)) return undefined;
  const to = new URL(location, from.href);
  const isUpgrade =
    from.protocol === 'http:' && to.protocol === 'https:' && to.port === '' && from.port === '';
  return to.host === from.host && (to.protocol === from.protocol || isUpgrade) ? to : undefined;
}

function originIn(location: string, from: URL): string | undefined {
  if (location === '' || !URL.canParse(location, from.href)) return undefined;
  const to = new URL(location, from.href);
  return to.host === '' ? undefined : originOf(to);
}

/** Without the path, in which a token may be, and without a password. */
function originOf({ protocol, host }: URL): string {
  return `${protocol}//${host}`;
}

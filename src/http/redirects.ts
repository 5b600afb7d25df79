/**
 * One rule for all that leaves this machine: nothing follows a redirect to another host. The first server would decide
 * who reads the conversation and its secrets, and a send that somebody else answered would count as sent.
 */

/** How often a download may be redirected within its host. */
export const mostRedirects = 5;

/** The error of a call that was redirected. The call itself has had no effect. */
export class RedirectRefused extends Error {
  /** For `network-fault.ts`: the message arrived nowhere that counts. */
  readonly code = 'ERR_REDIRECTED';
  readonly from: string;
  readonly to: string;

  constructor(from: URL, location: string) {
    const to = hostIn(location, from);
    super(`the server at ${from.origin} redirects to ${to}, which isn’t followed; set ${to} if you trust it`);
    this.name = 'RedirectRefused';
    this.from = from.origin;
    this.to = to;
  }
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

/** Without the path, in which a token may be. */
function hostIn(location: string, from: URL): string {
  if (!URL.canParse(location, from.href)) return 'an invalid address';
  const { origin, host } = new URL(location, from.href);
  return origin === 'null' ? host || 'an invalid address' : origin;
}

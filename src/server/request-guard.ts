/**
 * Decides from a request's head alone whether it may proceed: Host (except for webhooks), then Origin, then
 * the form of a state change. `identity.ts` identifies the caller afterwards. A refusal says nothing about content.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { Right } from '../operations/operation.ts';
import type { AllowedOrigins } from './allowed-origins.ts';

/**
 * `public`: there is no data behind it. `webhook`: the handler recognizes the caller by its own secret. `program`: only
 * a token counts, which no browser sends by itself.
 */
export type RouteAccess = Right | 'public' | 'webhook' | 'program';

export type RequestHead = {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly access: RouteAccess;
};

export type GuardVerdict =
  /** `bearerOnly`: there was no Origin, so a browser's cookie must not count. */
  | { readonly kind: 'pass'; readonly bearerOnly: boolean }
  | { readonly kind: 'refuse'; readonly status: 403 | 415 | 421; readonly code: string };

/** A header that a page of another origin can't send without a preflight request. */
export const changeHeader = 'x-parley';

/** Says whether the request asks for a WebSocket. Parley supports no other protocol that a client may offer. */
export function asksForSocket({ upgrade }: IncomingHttpHeaders): boolean {
  return upgrade?.toLowerCase() === 'websocket';
}

export function judgeHead(head: RequestHead, origins: AllowedOrigins): GuardVerdict {
  const { host, origin } = head.headers;
  if (head.access === 'webhook') {
    // The caller may know this server by any name, such as a container's, and proves itself by a secret that
    // a page with a rebound name doesn't have. A browser's POST has an Origin.
    return origin === undefined ? pass(false) : refuse(403, 'origin_not_allowed');
  }
  if (host === undefined || !origins.hasHost(host)) return refuse(421, 'host_not_allowed');
  if (origin !== undefined && !origins.isSameOrigin(origin, host)) return refuse(403, 'origin_not_allowed');
  const isUpgrade = asksForSocket(head.headers);
  const isChange = isUpgrade || !isReading(head.method);
  if ((isChange || head.access !== 'public') && isFromElsewhere(head.headers)) {
    return refuse(403, 'origin_not_allowed');
  }
  if (isChange && !isUpgrade) {
    const needsHeader = head.access !== 'program';
    if (needsHeader && head.headers[changeHeader] === undefined) return refuse(403, 'change_header_missing');
    if (!isUnusual(head.headers['content-type'])) return refuse(415, 'json_expected');
  }
  return pass(isChange && origin === undefined);
}

function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Reads where the browser says the request comes from; `none` is a person's own navigation. */
function isFromElsewhere(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

/** The content type of an uploaded file, whatever it is. */
export const fileType = 'application/octet-stream';

/** True for types that a form of another origin can't have: it can only send three others. */
function isUnusual(contentType: string | undefined): boolean {
  const type = contentType?.split(';')[0]?.trim().toLowerCase();
  return type === 'application/json' || type === fileType;
}

function pass(bearerOnly: boolean): GuardVerdict {
  return { kind: 'pass', bearerOnly };
}

function refuse(status: 403 | 415 | 421, code: string): GuardVerdict {
  return { kind: 'refuse', status, code };
}

/** Sent with every answer, including refusals: nothing inline, nothing from elsewhere, no framing. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "manifest-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
  'cache-control': 'no-store',
};

/**
 * Returns the source that an attempt counts against: an IPv4 address, or the first 64 bits of an IPv6 address, since
 * one client usually has that entire network. `forwarded` is the address from a trusted proxy; if it isn't an address,
 * the attempt counts against the proxy, `peer`.
 */
export function sourceOf(forwarded: string, peer = ''): string {
  const address = isIP(forwarded) === 0 ? peer : forwarded;
  if (isIP(address) !== 6) return address;
  const groups = groupsOf(address);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [6, 7].flatMap((at) => bytesOf(groups[at] ?? 0)).join('.');
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

function bytesOf(group: number): readonly number[] {
  return [group >> 8, group & 0xff];
}

/** Returns the eight groups of a valid IPv6 address in any notation. */
function groupsOf(address: string): readonly number[] {
  // An address with a zone (`fe80::1%eth0`) is link-local; the zone says nothing about the sender.
  const plain = address.replace(/%.*$/s, '');
  // The URL parser normalizes every notation: no dotted end, and zeros left out at most once.
  const [head = '', tail] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const before = numbersIn(head);
  const after = numbersIn(tail ?? '');
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function numbersIn(part: string): readonly number[] {
  return part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
}

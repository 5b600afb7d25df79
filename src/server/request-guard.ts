/**
 * Decides from a request's head alone whether it may proceed: Host (except for webhooks), then Origin, then
 * the form of a state change. `identity.ts` identifies the caller afterwards. A refusal says nothing about content.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Right } from '../operations/operation.ts';
import type { AllowedOrigins } from './allowed-origins.ts';

/** `public`: there is no data behind it. `webhook`: the handler recognises the caller by its own secret. */
export type RouteAccess = Right | 'public' | 'webhook';

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
    if (head.headers[changeHeader] === undefined) return refuse(403, 'change_header_missing');
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

/**
 * Decides whether a delivery comes from somebody who knows the webhook's secret, and which delivery it is. The name of
 * a delivery only counts if the signature covers it; otherwise the body is its name. Pure.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { parseJson } from '#channel-kit/parse-json.ts';

export type Signature = 'none' | 'github' | 'stripe' | 'standard' | 'grafana';

export type Delivery = {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Ms since the epoch. */
  readonly now: number;
};

export type DeliveryVerdict =
  | {
      readonly kind: 'genuine';
      /** The same for each attempt at the same delivery. */
      readonly id: string;
      /** The sender may report the same again later, in the same words: then it counts again. */
      readonly mayRecur: boolean;
    }
  | { readonly kind: 'refused'; readonly reason: 'wrong_secret' | 'too_old' };

/** How old a signed delivery may be, or how far its sender's clock may be ahead, ms. */
const maxAgeMs = 5 * 60_000;

const refused: DeliveryVerdict = { kind: 'refused', reason: 'wrong_secret' };

/** Judges a delivery. Takes the same time for every wrong signature. */
export function verifyDelivery(signature: Signature, secret: string, delivery: Delivery): DeliveryVerdict {
  switch (signature) {
    case 'none':
      return byToken(secret, delivery);
    case 'github':
      return byGithub(secret, delivery);
    case 'stripe':
      return byStripe(secret, delivery);
    case 'standard':
      return byStandard(secret, delivery);
    case 'grafana':
      return byGrafana(secret, delivery);
    default:
      return signature satisfies never;
  }
}

/** Says whether the secret itself was sent: as a bearer token, a basic password, or in a header of its own. */
export function knowsSecret(secret: string, headers: IncomingHttpHeaders): boolean {
  const [scheme = '', credentials = ''] = (headers.authorization ?? '').split(' ');
  const isBasic = scheme.toLowerCase() === 'basic';
  const password = isBasic
    ? Buffer.from(credentials, 'base64')
        .toString()
        .replace(/^[^:]*:/, '')
    : credentials;
  const given = [password, header(headers, 'x-webhook-secret'), header(headers, 'x-gitlab-token')];
  return given.map((one) => isSameProof(one, secret)).some(Boolean);
}

function byToken(secret: string, { headers, body }: Delivery): DeliveryVerdict {
  if (!knowsSecret(secret, headers)) return refused;
  const id = header(headers, 'idempotency-key') || header(headers, 'x-gitlab-event-uuid');
  return id === ''
    ? { kind: 'genuine', id: hashOf(body), mayRecur: true }
    : { kind: 'genuine', id, mayRecur: false };
}

/** The header with a delivery's id isn't signed. */
function byGithub(secret: string, { headers, body }: Delivery): DeliveryVerdict {
  const wanted = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  if (!isSameProof(header(headers, 'x-hub-signature-256'), wanted)) return refused;
  return { kind: 'genuine', id: hashOf(body), mayRecur: false };
}

/** Each attempt has a new time, and may count the endpoints that are left, but the event's id stays. */
function byStripe(secret: string, delivery: Delivery): DeliveryVerdict {
  const { headers, body } = delivery;
  const fields = header(headers, 'stripe-signature')
    .split(',')
    .map((field) => field.trim().split('='));
  const at = fields.find(([name]) => name === 't')?.[1] ?? '';
  const wanted = createHmac('sha256', secret).update(`${at}.`).update(body).digest('hex');
  const given = fields.flatMap(([name, value = '']) => (name === 'v1' ? [value] : []));
  if (!given.map((one) => isSameProof(one, wanted)).some(Boolean)) return refused;
  if (!isFresh(at, delivery)) return { kind: 'refused', reason: 'too_old' };
  return { kind: 'genuine', id: idIn(body) ?? hashOf(body), mayRecur: false };
}

/** https://www.standardwebhooks.com */
function byStandard(secret: string, delivery: Delivery): DeliveryVerdict {
  const { headers, body } = delivery;
  const id = header(headers, 'webhook-id');
  const at = header(headers, 'webhook-timestamp');
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const wanted = `v1,${createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest('base64')}`;
  const given = header(headers, 'webhook-signature').split(' ');
  if (id === '' || !given.map((one) => isSameProof(one, wanted)).some(Boolean)) return refused;
  if (!isFresh(at, delivery)) return { kind: 'refused', reason: 'too_old' };
  return { kind: 'genuine', id, mayRecur: false };
}

/** An alert that lasts is reported again, in the same words. The time is only signed if a header for it is set. */
function byGrafana(secret: string, delivery: Delivery): DeliveryVerdict {
  const { headers, body } = delivery;
  const at = header(headers, 'x-grafana-alerting-signature-timestamp');
  const hmac = createHmac('sha256', secret).update(at === '' ? '' : `${at}:`);
  if (!isSameProof(header(headers, 'x-grafana-alerting-signature'), hmac.update(body).digest('hex')))
    return refused;
  if (at !== '' && !isFresh(at, delivery)) return { kind: 'refused', reason: 'too_old' };
  return { kind: 'genuine', id: hashOf(body), mayRecur: true };
}

/** `at`: seconds since the epoch. */
function isFresh(at: string, { now }: Delivery): boolean {
  return /^\d{1,12}$/.test(at) && Math.abs(now - Number(at) * 1000) <= maxAgeMs;
}

function header(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}

/** Hashes first, so that neither contents nor lengths show in the time that it takes. */
function isSameProof(given: string, wanted: string): boolean {
  const [a, b] = [given, wanted].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

function hashOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64url');
}

function idIn(body: Buffer): string | undefined {
  const { id } = (readBody(body) ?? {}) as { readonly id?: unknown };
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/** Returns the body's JSON; undefined for anything else. */
export function readBody(body: Buffer): unknown {
  try {
    return parseJson(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

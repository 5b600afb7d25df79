import { createHmac, randomBytes } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';
import { isSameSecret } from './secret-comparison.ts';

/**
 * Makes and reads the value of the session cookie: `<expiry>.<id>.<mac>`. The key is derived from
 * the token, so sessions outlive a restart, end when the token changes, and never hold the token.
 */
export interface SessionSeal {
  issue(): { readonly value: string; readonly maxAgeS: number };
  /** The session's id; undefined when the value is forged, expired or revoked. */
  read(value: string): string | undefined;
  /** Ends one session in this process; its cookie is deleted in the browser as well. */
  revoke(id: string): void;
}

const sessionMs = 30 * 24 * 60 * 60 * 1000;
const idBytes = 18;

export function createSessionSeal(token: string, clock: Clock): SessionSeal {
  const key = createHmac('sha256', token).update('parley session key v1').digest();
  const revoked = new Set<string>();
  const macOf = (body: string) => createHmac('sha256', key).update(body).digest('base64url');
  return {
    issue: () => {
      const body = `${(clock.now() + sessionMs).toString(36)}.${randomBytes(idBytes).toString('base64url')}`;
      return { value: `${body}.${macOf(body)}`, maxAgeS: sessionMs / 1000 };
    },
    read: (value) => {
      const [expiry, id, mac, ...rest] = value.split('.');
      if (!expiry || !id || !mac || rest.length > 0) return undefined;
      if (!isSameSecret(mac, macOf(`${expiry}.${id}`))) return undefined;
      const isOver = Number.parseInt(expiry, 36) <= clock.now();
      return isOver || revoked.has(id) ? undefined : id;
    },
    revoke: (id) => void revoked.add(id),
  };
}

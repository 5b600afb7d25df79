import { parseSessionKey, topLaneOf } from '#contracts/session-key.ts';
import { programAccount } from '../service/program-calls.ts';
import type { Identity } from './identity.ts';

/** Says whether the caller may read a lane. A token with only the scope `chat` may read its own conversations. */
export function mayRead(identity: Identity | undefined, laneKey: string): boolean {
  return mayReadAll(identity) || isOwn(identity, laneKey);
}

export function mayReadAll(identity: Identity | undefined): boolean {
  return identity?.kind !== 'token' || identity.token.scopes.includes('read');
}

export function isOwn(identity: Identity | undefined, laneKey: string): boolean {
  const parts = parseSessionKey(topLaneOf(laneKey));
  if (identity?.kind !== 'token' || parts?.kind !== 'direct') return false;
  return parts.account === programAccount && parts.channel === identity.token.id;
}

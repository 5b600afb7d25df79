/**
 * Which accounts belong to one person, from both sources: the owner's configuration and links made in chat. If both
 * name an account, the configuration wins.
 */
import type { SessionKey } from '#contracts/ids.ts';
import type { ChatLinks } from '../store/links/read-links.ts';
import type { IdentityLinks } from './identity-links.ts';
import { formatSessionKey, parseSessionKey } from './session-key.ts';

/** Which accounts belong to one person. */
export type Identities = {
  /** Returns the identity of an account (`platformRef`); undefined if it isn't linked to any other. */
  get(ref: string): string | undefined;
  /** Returns all accounts of the identity. */
  accountsOf(identity: string): readonly LinkedAccount[];
  /** Returns the lane of a session key, which differs from the key if a link has it continue another conversation. */
  laneOf(key: SessionKey): string;
};

/** An account of an identity, and where the link was made. */
export type LinkedAccount = { readonly ref: string; readonly source: 'configuration' | 'chat' };

/** Adds the links that people made with `/link` to the configured ones, which win. */
export function joinIdentities(configured: IdentityLinks, links: ChatLinks): Identities {
  if (links.accounts.length === 0 && links.lanes.length === 0) return configuredOnly(configured);
  const inChat = new Map(
    links.accounts.filter(({ peer }) => !configured.has(peer)).map(({ peer, identity }) => [peer, identity]),
  );
  const lanes = new Map(links.lanes.map(({ key, laneKey }) => [key, laneKey]));
  const { accountsOf } = configuredOnly(configured);
  return {
    get: (ref) => configured.get(ref) ?? inChat.get(ref),
    accountsOf: (identity) => [
      ...accountsOf(identity),
      ...[...inChat].flatMap(([ref, own]) => (own === identity ? [{ ref, source: 'chat' } as const] : [])),
    ],
    laneOf: (key) => lanes.get(key) ?? laneOfThread(key, lanes) ?? key,
  };
}

function configuredOnly(configured: IdentityLinks): Identities {
  return {
    get: (ref) => configured.get(ref),
    accountsOf: (identity) =>
      [...configured].flatMap(([ref, own]) =>
        own === identity ? [{ ref, source: 'configuration' } as const] : [],
      ),
    laneOf: (key) => key,
  };
}

/** Threads follow their conversation to its lane. */
function laneOfThread(key: SessionKey, lanes: ReadonlyMap<string, string>): string | undefined {
  if (lanes.size === 0) return undefined;
  const parts = parseSessionKey(key);
  if (parts?.kind !== 'thread') return undefined;
  const within = parseSessionKey(lanes.get(formatSessionKey(parts.within)) ?? '');
  return within?.kind === 'direct' ? formatSessionKey({ ...parts, within }) : undefined;
}

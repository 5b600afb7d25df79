/**
 * Who is one person, by both sources: the owner's configuration, and what people have linked in chat.
 * Where both name an account the configuration holds.
 */
import type { SessionKey } from '#contracts/ids.ts';
import type { ChatLinks } from '../store/links/read-links.ts';
import type { IdentityLinks } from './identity-links.ts';
import { formatSessionKey, parseSessionKey } from './session-key.ts';

/** Which accounts belong to one person. */
export type Identities = {
  /** The identity of an account (`platformRef`); undefined when it is nobody's but its own. */
  get(ref: string): string | undefined;
  /** Every account of the identity. */
  accountsOf(identity: string): readonly LinkedAccount[];
  /** The lane of a session key: another one's, where a conversation goes on that began before the link. */
  laneOf(key: SessionKey): string;
};

/** An account of an identity, and where the link was made. */
export type LinkedAccount = { readonly ref: string; readonly source: 'configuration' | 'chat' };

/** Adds the links that people made by `/link` to the configured ones, which win. */
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

/** The threads of a conversation go on where it goes on. */
function laneOfThread(key: SessionKey, lanes: ReadonlyMap<string, string>): string | undefined {
  if (lanes.size === 0) return undefined;
  const parts = parseSessionKey(key);
  if (parts?.kind !== 'thread') return undefined;
  const within = parseSessionKey(lanes.get(formatSessionKey(parts.within)) ?? '');
  return within?.kind === 'direct' ? formatSessionKey({ ...parts, within }) : undefined;
}

/**
 * Which accounts belong to one person, from both sources: the owner's configuration and links made in chat. If both
 * name an account, the configuration wins.
 */

import { ParleyError } from '#contracts/errors.ts';
import type { ChannelId, ConversationId, PeerId, SessionKey } from '#contracts/ids.ts';
import { formatSessionKey, parseSessionKey } from '#contracts/session-key.ts';
import type { ChatLinks } from '../store/links/read-links.ts';

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

/** Maps a person's platform reference (`platformRef`) to the identity that their accounts share. */
export type IdentityLinks = ReadonlyMap<string, string>;

/**
 * Reads the configured form `{ alice: ['telegram:1', 'web:owner'] }`. Throws ParleyError `config_invalid` if an account
 * is claimed by two identities, which would turn two people into one.
 */
export function identityLinksFrom(configured: Readonly<Record<string, readonly string[]>>): IdentityLinks {
  const links = new Map<string, string>();
  for (const [identity, refs] of Object.entries(configured)) {
    for (const ref of refs) {
      const other = links.get(ref);
      if (other !== undefined && other !== identity) {
        throw new ParleyError(
          'config_invalid',
          `identityLinks: ${ref} is listed under "${other}" and "${identity}"; keep one of them.`,
        );
      }
      links.set(ref, identity);
    }
  }
  return links;
}

/**
 * Returns the reference by which the configuration names a person, group or guild of a network, such as `telegram:123`.
 * It is built from the immutable platform id only. Channel ids contain no `:`, so references never collide.
 */
export function platformRef(channel: ChannelId, id: PeerId | ConversationId): string {
  return `${channel}:${id}`;
}

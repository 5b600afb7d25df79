/** Decides which lane an event enters, for intake and for anything that shows people their lanes. */
import { type AgentId, peerId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { type Identities, joinIdentities } from '../sessions/identities.ts';
import { agentFor, type RoutingInput } from '../sessions/routing.ts';
import { sessionKeyOf } from '../sessions/session-key-of.ts';
import { noLinks } from '../store/links/read-links.ts';
import type { InboundPolicy } from './inbound-policy.ts';

/** The agent that answers an event, and the key of the lane it enters. */
export type LaneAddress = { readonly agent: AgentId; readonly laneKey: string };

/** Returns the address of an event; `identities` are those linked when it arrives. */
export function laneAddress(
  { bindings, defaultAgent, dmScope }: Pick<InboundPolicy, 'bindings' | 'defaultAgent' | 'dmScope'>,
  event: RoutingInput,
  identities: Identities,
): LaneAddress {
  const agent = agentFor(event, bindings, defaultAgent);
  const key = sessionKeyOf(event, { agent, dmScope, identityLinks: identities });
  return { agent, laneKey: identities.laneOf(key) };
}

/** A conversation of this machine's user on a local channel (web, terminal). */
export type LocalPlace = {
  readonly route: ReplyRoute;
  readonly peer: string;
  /** The name of the channel's account in the configuration. */
  readonly accountName?: string | undefined;
};

/**
 * Returns the key of the lane that such a conversation's messages enter. The configuration puts the machine's user into
 * an identity, so links made in chat can't change the lane.
 */
export function localLaneKey(
  gate: Pick<InboundPolicy, 'bindings' | 'defaultAgent' | 'dmScope' | 'identityLinks'>,
  { route, peer, accountName }: LocalPlace,
): string {
  const event = { route, chat: { kind: 'dm' }, sender: { id: peerId(peer) }, accountName } as const;
  return laneAddress(gate, event, joinIdentities(gate.identityLinks, noLinks)).laneKey;
}

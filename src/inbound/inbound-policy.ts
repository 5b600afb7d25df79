import { type AgentId, agentId, peerId } from '#contracts/ids.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { QueueLevel } from '../commands/chat-command.ts';
import type { PluginCommands } from '../commands/plugin-command.ts';
import type { Binding, Config } from '../config/config.ts';
import { namedOwners } from '../config/load-config.ts';
import {
  type Identities,
  type IdentityLinks,
  identityLinksFrom,
  joinIdentities,
} from '../sessions/identities.ts';
import type { ResetSettings } from '../sessions/reset-policy.ts';
import { agentFor, type DmScope, type RoutingInput, sessionKeyOf } from '../sessions/session-key-of.ts';
import { noLinks } from '../store/links/read-links.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import { type AccessPolicy, accessPolicyFrom } from './authorize.ts';
import type { MentionPattern } from './mention-gate.ts';
import type { PairingSettings } from './pairing.ts';
import { createRateLimit, type RateLimit } from './rate-limit.ts';

/** The rules by which intake decides; compiled once from the configuration. */
export type InboundPolicy = {
  readonly access: AccessPolicy;
  readonly pairing: PairingSettings;
  /** Owners named in the configuration, except this machine's user: `channel:peer`. */
  readonly namedOwners: readonly string[];
  readonly bindings: readonly Binding[];
  readonly defaultAgent: AgentId;
  /** Agents that run; one chosen in chat may no longer be among them. */
  readonly agentIds: ReadonlySet<string>;
  readonly dmScope: DmScope;
  readonly identityLinks: IdentityLinks;
  readonly groups: Config['groups'];
  /** `channel:conversation` → whether a mention is required there. */
  readonly groupSettings: Config['access']['groups'];
  readonly mentionPatterns: readonly MentionPattern[];
  readonly queue: Omit<Config['queue'], 'waitingNotice'>;
  readonly joinMs: number;
  readonly reset: ResetSettings;
  readonly timeZone: string;
  readonly texts: ChatTexts;
  readonly rateLimit: RateLimit;
  /** Absent: no plugins. */
  readonly pluginCommands?: PluginCommands;
};

/** Compiles the inbound rules of the configuration. */
export function createInboundPolicy(config: Config, texts: ChatTexts): InboundPolicy {
  let { timeZone } = config;
  return {
    access: accessPolicyFrom(config),
    pairing: config.access.pairing,
    namedOwners: namedOwners(config),
    bindings: config.bindings,
    defaultAgent: config.defaultAgent,
    agentIds: new Set(config.agents.map(({ id }) => id)),
    dmScope: config.dmScope,
    identityLinks: identityLinksFrom(config.identityLinks),
    groups: config.groups,
    groupSettings: config.access.groups,
    mentionPatterns: config.mentionMatchers,
    queue: config.queue,
    joinMs: config.joinMs,
    reset: config.reset as ResetSettings,
    get timeZone() {
      // Found on demand: most commands need no time zone, and asking for it loads every language's calendar.
      timeZone ??= Intl.DateTimeFormat().resolvedOptions().timeZone;
      return timeZone;
    },
    texts,
    rateLimit: createRateLimit({ perMinute: config.rateLimit.perSenderPerMinute }),
  };
}

export type QueuePlace = {
  readonly channel: string;
  readonly conversation: string;
  /** Its first id, if its network has since changed it: settings for that id still apply. */
  readonly formerly?: string | undefined;
  readonly kind: 'dm' | 'group';
};

/**
 * Returns the levels of queue settings. The first level that names a setting decides it: conversation, channel, kind of
 * chat. The store gives precedence to settings made for the session with `/queue`.
 */
export function queueLevelsFor(
  { queue }: Pick<InboundPolicy, 'queue'>,
  place: QueuePlace,
): readonly QueueLevel[] {
  const namesOf = (id: string) => ownOf(queue.conversations, `${place.channel}:${id}`);
  const { conversation, formerly = conversation } = place;
  return [
    { level: 'conversation', names: { ...namesOf(formerly), ...namesOf(conversation) } },
    { level: 'channel', names: ownOf(queue.channels, place.channel) },
    { level: 'global', names: queue[place.kind] },
  ];
}

/**
 * Returns the effective queue settings: each one is set by the conversation, else the channel, else the kind of chat.
 */
export function queueSettingsFor(policy: Pick<InboundPolicy, 'queue'>, place: QueuePlace): QueueSettings {
  const [conversation, channel] = queueLevelsFor(policy, place);
  return { ...policy.queue[place.kind], ...channel?.names, ...conversation?.names };
}

/** Own properties only: names are untrusted and may be `constructor`. */
function ownOf<Value extends object>(record: Readonly<Record<string, Value>>, name: string): Partial<Value> {
  return (Object.hasOwn(record, name) ? record[name] : undefined) ?? {};
}

// Decides which lane an event enters, for intake and for anything that shows people their lanes.

/** The agent that answers an event, and the key of the lane it enters. */
type LaneAddress = { readonly agent: AgentId; readonly laneKey: string };

/** An agent chosen in chat for this conversation, or for one thread of it. */
type ChosenAgent = { readonly thread: string; readonly agentId: string };

/**
 * Returns the agent that was chosen in chat where the event happened: that of its thread, else that of its
 * conversation. One that no longer runs counts as not chosen.
 */
export function chosenAgent(
  { agentIds }: Pick<InboundPolicy, 'agentIds'>,
  thread: string | undefined,
  chosen: readonly ChosenAgent[],
): AgentId | undefined {
  const running = chosen.filter((each) => agentIds.has(each.agentId));
  const own = thread === undefined ? undefined : running.find((each) => each.thread === thread);
  const found = own ?? running.find((each) => each.thread === '');
  return found && agentId(found.agentId);
}

/**
 * Returns the address of an event; `identities` are those linked when it arrives. An agent `chosen` in chat outranks
 * every configured binding.
 */
export function laneAddress(
  { bindings, defaultAgent, dmScope }: Pick<InboundPolicy, 'bindings' | 'defaultAgent' | 'dmScope'>,
  event: RoutingInput,
  identities: Identities,
  chosen?: AgentId,
): LaneAddress {
  const agent = chosen ?? agentFor(event, bindings, defaultAgent);
  const key = sessionKeyOf(event, { agent, dmScope, identityLinks: identities });
  return { agent, laneKey: identities.laneOf(key) };
}

/** A conversation of this machine's user on a local channel (web, terminal). */
type LocalPlace = {
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
  policy: Pick<InboundPolicy, 'bindings' | 'defaultAgent' | 'dmScope' | 'identityLinks'>,
  { route, peer, accountName }: LocalPlace,
): string {
  const event = { route, chat: { kind: 'dm' }, sender: { id: peerId(peer) }, accountName } as const;
  return laneAddress(policy, event, joinIdentities(policy.identityLinks, noLinks)).laneKey;
}

import type { AgentId } from '#contracts/ids.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { Config } from '../config/config.ts';
import type { Notices } from '../replies/notices.ts';
import { type IdentityLinks, identityLinksFrom } from '../sessions/identity-links.ts';
import type { ResetSettings } from '../sessions/reset-policy.ts';
import type { AgentBinding } from '../sessions/routing.ts';
import type { DmScope } from '../sessions/session-key-of.ts';
import { type AccessPolicy, accessPolicyFrom } from './access-policy.ts';
import type { MentionPattern } from './mention-gate.ts';
import type { PairingSettings } from './pairing.ts';
import { createRateLimit, type RateLimit } from './rate-limit.ts';

/** What the door decides by; made once from the configuration. */
export type Gate = {
  readonly access: AccessPolicy;
  readonly pairing: PairingSettings;
  readonly bindings: readonly AgentBinding[];
  readonly defaultAgent: AgentId;
  readonly dmScope: DmScope;
  readonly identityLinks: IdentityLinks;
  readonly groups: Config['groups'];
  /** `channel:conversation` → whether a mention is required there. */
  readonly groupSettings: Config['access']['groups'];
  readonly mentionPatterns: readonly MentionPattern[];
  readonly queue: Config['queue'];
  readonly joinMs: number;
  readonly reset: ResetSettings;
  readonly timeZone: string;
  readonly notices: Notices;
  readonly rateLimit: RateLimit;
};

export function createGate(config: Config, notices: Notices): Gate {
  return {
    access: accessPolicyFrom(config),
    pairing: config.access.pairing,
    bindings: config.bindings,
    defaultAgent: config.defaultAgent,
    dmScope: config.dmScope,
    identityLinks: identityLinksFrom(config.identityLinks),
    groups: config.groups,
    groupSettings: config.access.groups,
    mentionPatterns: config.mentionMatchers,
    queue: config.queue,
    joinMs: config.joinMs,
    reset: config.reset as ResetSettings,
    timeZone: config.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    notices,
    rateLimit: createRateLimit({ perMinute: config.rateLimit.perSenderPerMinute }),
  };
}

/** Conversation > channel > kind of chat; what `/queue` set on the session comes before all of them. */
export function queueSettingsFor(
  gate: Gate,
  place: { channel: string; conversation: string; kind: 'dm' | 'group' },
): QueueSettings {
  const { queue } = gate;
  const ofChannel = Object.hasOwn(queue.channels, place.channel) ? queue.channels[place.channel] : {};
  const ref = `${place.channel}:${place.conversation}`;
  const ofConversation = Object.hasOwn(queue.conversations, ref) ? queue.conversations[ref] : {};
  return { ...queue[place.kind], ...ofChannel, ...ofConversation };
}

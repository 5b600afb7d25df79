import { cleanText } from '#channel-kit/clean-text.ts';
import { keyOf, nobody } from '#channel-kit/event-mapping.ts';
import { remoteTime } from '#channel-kit/remote-number.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { type ConversationId, conversationId } from '#contracts/ids.ts';
import { discord } from './ids.ts';
import type { MappingContext } from './inbound.ts';
import { joiningSchema } from './payload-schema.ts';
import { senderOf } from './people.ts';

/** Reports that the bot was removed: one event for each conversation it knew there. */
export function readRemoval(
  conversations: readonly ConversationId[],
  { guildId, s }: { readonly guildId: string; readonly s: number },
  around: Pick<MappingContext, 'bot' | 'session' | 'receivedAt'>,
): readonly InboundEnvelope[] {
  return conversations.map((conversation) => ({
    eventKey: keyOf('membership', conversation, 'off', around.session, s),
    sentAt: around.receivedAt,
    route: { channel: discord, account: around.bot.account, conversation },
    chat: { kind: 'group', parent: conversationId(guildId) },
    sender: nobody,
    event: { kind: 'membership', isMember: false },
  }));
}

/** After this time it is no longer news that the bot has joined, ms. */
const newsMs = 24 * 3_600_000;

/**
 * Returns one event for the guild, in the channel where Discord greets newcomers; undefined if the bot joined longer
 * ago, or may not write anywhere. Discord repeats the report in every session and doesn't say who added the bot, so
 * the key identifies the joining, and the guild's owner counts as the sender.
 */
export function readJoining(data: unknown, around: MappingContext): InboundEnvelope | undefined {
  const guild = joiningSchema.safeParse(data).data;
  if (guild === undefined) return undefined;
  const { id, owner_id: ownerId, joined_at: joinedAt, system_channel_id: greeting } = guild;
  const { bot, receivedAt } = around;
  const place = around.directory.greetingPlace(id, greeting);
  if (place === undefined || !(Date.parse(joinedAt) > receivedAt - newsMs)) return undefined;
  const user = around.recent.person(ownerId) ?? { id: ownerId, username: ownerId };
  return {
    eventKey: keyOf('membership', id, 'on', cleanText(joinedAt)),
    sentAt: remoteTime(Date.parse(joinedAt), receivedAt),
    route: place.route,
    chat: place.chat,
    sender: senderOf({ user }, bot),
    event: { kind: 'membership', isMember: true },
  };
}

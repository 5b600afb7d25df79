/** A guild that the bot was added to, as the gateway reports it. Pure. */
import { cleanText } from '#channel-kit/clean-text.ts';
import { keyOf } from '#channel-kit/event-mapping.ts';
import { remoteTime } from '#channel-kit/remote-number.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { Directory } from './directory.ts';
import type { MappingContext } from './inbound.ts';
import { joiningSchema } from './payload-schema.ts';
import { senderOf } from './people.ts';

/** After this time it is no news that the bot is there, ms. */
const newsMs = 24 * 3_600_000;

type Surroundings = Pick<MappingContext, 'bot' | 'receivedAt' | 'person'> & Pick<Directory, 'greetingPlace'>;

/**
 * One event for the guild, in the channel in which Discord greets; undefined when the bot has been there for longer, or
 * may write nowhere. Discord repeats the report in each session and doesn't say who added the bot: the key is that of
 * the joining, and the guild's owner counts as who did it.
 */
export function readJoining(data: unknown, around: Surroundings): InboundEnvelope | undefined {
  const guild = joiningSchema.safeParse(data).data;
  if (guild === undefined) return undefined;
  const { id, owner_id: ownerId, joined_at: joinedAt, system_channel_id: greeting } = guild;
  const { bot, receivedAt } = around;
  const place = around.greetingPlace(id, greeting);
  if (place === undefined || !(Date.parse(joinedAt) > receivedAt - newsMs)) return undefined;
  const user = around.person(ownerId) ?? { id: ownerId, username: ownerId };
  return {
    eventKey: keyOf('membership', id, 'on', cleanText(joinedAt)),
    sentAt: remoteTime(Date.parse(joinedAt), receivedAt),
    route: place.route,
    chat: place.chat,
    sender: senderOf({ user }, bot),
    event: { kind: 'membership', isMember: true },
  };
}

import { MessageFlags, MessageReferenceType, MessageType } from 'discord.js';
import type { Provenance } from '#contracts/envelope.ts';
import type { Message } from './payload-schema.ts';

/** Published to the channels that follow this one, or received from a followed channel. */
const crosspostFlags = MessageFlags.Crossposted | MessageFlags.IsCrosspost;

export function isForward({
  message_reference: reference,
  message_snapshots: hasSnapshots,
  flags,
}: Message): boolean {
  const isMarked = (flags & MessageFlags.HasSnapshot) !== 0;
  return isMarked || reference?.type === MessageReferenceType.Forward || hasSnapshots;
}

/** Fields of a message that an application wrote, answers with, or had the person's client send. */
const programMarks = [
  'application_id',
  'application',
  'activity',
  'interaction_metadata',
  'interaction',
] as const;

/** A forward has its text in a snapshot; nobody typed what an application or a webhook writes. */
export function provenanceOf(message: Message): Provenance {
  if (isForward(message)) return 'forwarded';
  if ((message.flags & crosspostFlags) !== 0) return 'channel-post';
  const isAutomated =
    message.webhook_id ||
    programMarks.some((mark) => message[mark]) ||
    message.author.bot === true ||
    message.author.system === true;
  if (isAutomated) return 'automated';
  const isTyped = message.type === MessageType.Default || message.type === MessageType.Reply;
  return isTyped ? 'typed' : 'unknown';
}

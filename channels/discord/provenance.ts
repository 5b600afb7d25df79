import { MessageFlags, MessageReferenceType, MessageType } from 'discord.js';
import type { Provenance } from '#contracts/provenance.ts';
import type { Message } from './payload-schema.ts';

/** Published to the channels that follow, or come from one. */
const crosspostFlags = MessageFlags.Crossposted | MessageFlags.IsCrosspost;

export function isForward({ message_reference: reference, message_snapshots: snapshots }: Message): boolean {
  return reference?.type === MessageReferenceType.Forward || (snapshots?.length ?? 0) > 0;
}

/** A forward has its text in a snapshot; what an application or a webhook writes is nobody's typing. */
export function provenanceOf(message: Message): Provenance {
  if (isForward(message)) return 'forwarded';
  if ((message.flags & crosspostFlags) !== 0) return 'channel-post';
  const isAutomated =
    message.webhook_id !== undefined ||
    Boolean(message.application_id) ||
    message.interaction_metadata !== undefined ||
    message.author.bot === true;
  if (isAutomated) return 'automated';
  const isTyped = message.type === MessageType.Default || message.type === MessageType.Reply;
  return isTyped ? 'typed' : 'unknown';
}

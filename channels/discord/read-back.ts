/** Finds the bot's own messages that could be a part whose send was cut off. Pure. */
import { z } from 'zod';
import { isLater, isSnowflake } from './ids.ts';
import { soft, softList, softText } from './lenient.ts';
import type { SendBody } from './outbound.ts';

const ownMessageSchema = z.object({
  id: z.string().refine(isSnowflake),
  author: z.object({ id: z.string() }),
  content: z.string().catch(''),
  nonce: softText(64),
  attachments: softList(z.object({ filename: z.string() }), 100),
  interaction_metadata: soft(z.object({ id: z.string() })),
});
type OwnMessage = z.output<typeof ownMessageSchema>;

/** Returns ids, oldest first. The same nonce is a match; where the history doesn't show nonces, the text decides. */
export function candidates(messages: readonly unknown[], body: SendBody, botId: string): readonly string[] {
  const own = ownMessages(messages, botId);
  const known = own.filter(({ nonce }) => nonce === body.nonce);
  const alike = own.filter((message) => message.nonce === undefined && readsTheSame(message, body));
  return (known.length > 0 ? known : alike).map(({ id }) => id);
}

/** Returns the message that answers the interaction with this text, if it exists. */
export function answerTo(
  messages: readonly unknown[],
  { interaction, content, botId }: Readonly<Record<'interaction' | 'content' | 'botId', string>>,
): string | undefined {
  return ownMessages(messages, botId).find(
    (message) => message.interaction_metadata?.id === interaction && message.content === content.trim(),
  )?.id;
}

function ownMessages(messages: readonly unknown[], botId: string): readonly OwnMessage[] {
  return messages
    .flatMap((message) => ownMessageSchema.safeParse(message).data ?? [])
    .filter(({ author }) => author.id === botId)
    .sort((a, b) => (isLater(a.id, b.id) ? 1 : -1));
}

function readsTheSame({ content, attachments }: OwnMessage, body: SendBody): boolean {
  const files = (body.attachments ?? []).map(({ filename }) => filename);
  return (
    content === body.content.trim() &&
    attachments.length === files.length &&
    attachments.every(({ filename }, index) => filename === files[index])
  );
}

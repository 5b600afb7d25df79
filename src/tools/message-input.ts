import { z } from 'zod';

/** A message on its network: an id, `current` (the one that the turn answers) or `last` (the agent's own newest). */
const reference = z.string().min(1).max(256);
const text = z.string().min(1).max(32_000);
const emoji = z.string().max(32).refine(isEmoji, 'one emoji, as a character');
const files = z.array(z.string().min(1).max(4096)).min(1).max(10);
const to = z.string().max(2_048).optional();

/** As providers take it: none takes a union at the top of a schema. */
const written = z.object({
  action: z.enum(['send', 'react', 'edit', 'delete']).default('send'),
  text: text.optional().describe('For send and edit: what to say, in Markdown.'),
  files: files.optional().describe('For send: paths of workspace files to send along.'),
  replyTo: reference
    .optional()
    .describe(
      'For send: the message to quote. A message is named by its id (sessions_history tells it); "current" is the one you answer, "last" your newest.',
    ),
  message: reference
    .optional()
    .describe('For react: the message to react to. For edit and delete: one of your own, such as "last".'),
  emoji: z.string().max(32).optional().describe('For react: one emoji, as a character.'),
  to: to.describe('Session key of another conversation (see sessions_list). Absent: this conversation.'),
});

const actions = z.discriminatedUnion('action', [
  z
    .strictObject({
      action: z.literal('send'),
      text: text.optional(),
      files: files.optional(),
      replyTo: reference.optional(),
      to,
    })
    .refine((send) => send.text !== undefined || send.files !== undefined, 'a text or files are needed'),
  z.strictObject({ action: z.literal('react'), message: reference, emoji, to }),
  z.strictObject({ action: z.literal('edit'), message: reference, text, to }),
  z.strictObject({ action: z.literal('delete'), message: reference, to }),
]);

/** Arguments of the `message` tool. What an action doesn't take is refused. */
export const messageInput = written.pipe(actions);

/** One thing to do with a message. */
export type MessageAction = z.output<typeof messageInput>;

/** Some models fill in every argument they don't use. */
export function withoutEmpty(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw;
  return Object.fromEntries(Object.entries(raw).filter(([, value]) => !isEmpty(value)));
}

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** One that people's keyboards have, with or without the selector that makes an emoji of a sign. */
function isEmoji(text: string): boolean {
  return /^\p{RGI_Emoji}$/v.test(text) || /^\p{RGI_Emoji}$/v.test(`${text}\ufe0f`);
}

/** The tools of this channel, and what each of their actions sends. Pure. */
import { PollLayoutType, type RESTAPIPoll } from 'discord.js';
import { z } from 'zod';
import { type ChannelTool, defineChannelTool } from '#contracts/channel-abilities.ts';
import { ParleyError } from '#contracts/errors.ts';
import { messageId } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import { isSnowflake } from './ids.ts';

type Action = Extract<Outbound['content'], { kind: 'action' }>;

export type ActionCall =
  | { readonly method: 'poll'; readonly poll: RESTAPIPoll }
  | { readonly method: 'pin' | 'unpin'; readonly message: string }
  /** A public thread; with a message, the one that hangs on it. */
  | { readonly method: 'thread'; readonly name: string; readonly message?: string };

const reference = z
  .string()
  .min(1)
  .max(256)
  .describe('The message’s id; "current" is the one you answer, "last" your newest.');

/** The bounds are Discord's. */
const pollInput = z.strictObject({
  question: z.string().trim().min(1).max(300),
  options: z.array(z.string().trim().min(1).max(55)).min(2).max(10),
  multiple: z.boolean().default(false).describe('People may choose several options.'),
  hours: z.int().min(1).max(768).default(24).describe('Hours until it closes.'),
});

const pinInput = z.strictObject({
  message: reference,
  unpin: z.boolean().default(false).describe('Take it from the pinned messages instead.'),
});

const threadInput = z.strictObject({
  name: z.string().trim().min(1).max(100),
  message: reference.optional().describe('The message to open it on. Absent: a thread on no message.'),
});

export const tools: readonly ChannelTool[] = [
  defineChannelTool<z.output<typeof pollInput>>({
    name: 'poll',
    description:
      'Send a poll to this conversation. It is a message of its own; everybody sees who chose what.',
    inputSchema: pollInput,
    authority: 'member',
    act: (input) => ({ input, summary: `poll: ${input.question}`, isMessage: true }),
  }),
  defineChannelTool<z.output<typeof pinInput>>({
    name: 'pin',
    description: 'Pin a message of this conversation, or unpin it. In servers the bot needs that permission.',
    inputSchema: pinInput,
    authority: 'member',
    act: ({ message, unpin }) => {
      const summary = `${unpin ? 'unpin' : 'pin'} message ${message}`;
      return { input: { message, unpin }, summary, messageId: messageId(message) };
    },
  }),
  defineChannelTool<z.output<typeof threadInput>>({
    name: 'thread',
    description:
      'Open a public thread in this channel. To begin one with words of yours, send them with `message` and open it on "last".',
    inputSchema: threadInput,
    authority: 'member',
    act: ({ name, message }, route) => {
      if (route.thread !== undefined)
        throw new ParleyError('invalid_input', 'This is a thread already; none can be opened inside it.');
      const action = { input: { name }, summary: `thread: ${name}` };
      return message === undefined ? action : { ...action, messageId: messageId(message) };
    },
  }),
];

/** Returns what an action sends; undefined for one that this version can't read. */
export function actionCall({ tool, input, messageId: message }: Action): ActionCall | undefined {
  if (message !== undefined && !isSnowflake(message)) return undefined;
  if (tool === 'poll') {
    const poll = pollInput.safeParse(input).data;
    return poll && { method: 'poll', poll: pollOf(poll) };
  }
  if (tool === 'thread') {
    const thread = threadInput.safeParse(input).data;
    return thread && { method: 'thread', name: thread.name, ...(message !== undefined && { message }) };
  }
  const pin = tool === 'pin' ? z.object({ unpin: z.boolean() }).safeParse(input).data : undefined;
  if (pin === undefined || message === undefined) return undefined;
  return { method: pin.unpin ? 'unpin' : 'pin', message };
}

function pollOf({ question, options, multiple, hours }: z.output<typeof pollInput>): RESTAPIPoll {
  return {
    question: { text: question },
    answers: options.map((text) => ({ poll_media: { text } })),
    duration: hours,
    allow_multiselect: multiple,
    layout_type: PollLayoutType.Default,
  };
}

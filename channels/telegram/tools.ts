/** The tools of this channel, and the call for each of their actions. Pure. */
import type { RawApi } from 'grammy/web';
import { z } from 'zod';
import { type ChannelTool, defineChannelTool } from '#contracts/channel-abilities.ts';
import { messageId } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import { numericId } from './ids.ts';

type Payload<Method extends keyof RawApi> = Parameters<RawApi[Method]>[0];
type Action = Extract<Outbound['content'], { kind: 'action' }>;

export type ActionCall =
  | { readonly method: 'sendPoll'; readonly payload: Payload<'sendPoll'> }
  | { readonly method: 'pinChatMessage'; readonly payload: Payload<'pinChatMessage'> }
  | { readonly method: 'unpinChatMessage'; readonly payload: Payload<'unpinChatMessage'> };

/** The bounds are the Bot API's, except that a poll with a single option is no question. */
const pollInput = z.strictObject({
  question: z.string().trim().min(1).max(300),
  options: z.array(z.string().trim().min(1).max(100)).min(2).max(12),
  multiple: z.boolean().default(false).describe('People may choose several options.'),
  anonymous: z.boolean().default(true).describe('Nobody sees who chose what.'),
  minutes: z.int().min(1).max(43_800).optional().describe('Minutes until it closes. Absent: it stays open.'),
});

const pinInput = z.strictObject({
  message: z
    .string()
    .min(1)
    .max(256)
    .describe('The message’s id; "current" is the one you answer, "last" your newest.'),
  unpin: z.boolean().default(false).describe('Take it from the pinned messages instead.'),
});

export const tools: readonly ChannelTool[] = [
  defineChannelTool<z.output<typeof pollInput>>({
    name: 'poll',
    description: 'Send a poll to this conversation. It is a message of its own; people vote by tapping.',
    inputSchema: pollInput,
    authority: 'member',
    act: (input) => ({ input, summary: `poll: ${input.question}`, isMessage: true }),
  }),
  defineChannelTool<z.output<typeof pinInput>>({
    name: 'pin',
    description:
      'Pin a message of this conversation, without a notification, or unpin it. In groups the bot needs that right.',
    inputSchema: pinInput,
    authority: 'member',
    act: ({ message, unpin }) => {
      const summary = `${unpin ? 'unpin' : 'pin'} message ${message}`;
      return { input: { message, unpin }, summary, messageId: messageId(message) };
    },
  }),
];

export type ActionTarget = { readonly chat_id: number; readonly message_thread_id?: number };

/** Returns the call of an action; undefined for one that this version can't read. */
export function actionCall(
  { tool, input, messageId: id }: Action,
  target: ActionTarget,
): ActionCall | undefined {
  if (tool === 'poll') {
    const poll = pollInput.safeParse(input).data;
    return poll && { method: 'sendPoll', payload: { ...target, ...pollPayload(poll) } };
  }
  const pin = tool === 'pin' ? pinInput.safeParse(input).data : undefined;
  const number = id === undefined ? undefined : numericId(id);
  if (pin === undefined || number === undefined) return undefined;
  const message = { chat_id: target.chat_id, message_id: number };
  return pin.unpin
    ? { method: 'unpinChatMessage', payload: message }
    : { method: 'pinChatMessage', payload: { ...message, disable_notification: true } };
}

function pollPayload({ question, options, multiple, anonymous, minutes }: z.output<typeof pollInput>) {
  return {
    question,
    options: options.map((text) => ({ text })),
    is_anonymous: anonymous,
    allows_multiple_answers: multiple,
    ...(minutes !== undefined && { open_period: minutes * 60 }),
  };
}

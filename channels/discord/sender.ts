import { ChannelType, MessageFlags } from 'discord.js';
import { z } from 'zod';
import { keepRecent } from '#channel-kit/keep-recent.ts';
import { neverLeft } from '#channel-kit/network-fault.ts';
import { failed, sent, sizesOf } from '#channel-kit/send-result.ts';
import type { Found } from '#contracts/channel-abilities.ts';
import { messageId, type PartKey } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import { filesOf, type Outbound, type OutboundContent, type SendResult } from '#contracts/outbound.ts';
import type { DiscordApi } from './api.ts';
import {
  failureOf,
  isBlockedUpstream,
  isQuoteRefused,
  isVoiceRefused,
  readRefusal,
  reasonOf,
} from './failures.ts';
import { type Bot, isLater, isSnowflake, laterSnowflake, snowflakeAt } from './ids.ts';
import type { Interactions } from './interactions.ts';
import { type Call, interactionOf, type SendBody, targetOf, textBody, toCall } from './outbound.ts';
import { channelSchema } from './payload-schema.ts';
import { snowflakeOf, soft, softList, softText } from './raw-fields.ts';
import { readVoice, type Voice } from './voice.ts';

export type SenderDeps = {
  readonly api: DiscordApi;
  readonly bot: Bot;
  readonly interactions: Interactions;
  readonly log: Log;
};

/** The two clocks may differ by this much, ms; other messages of that time are told apart by text and receipts. */
const clockSlackMs = 60_000;
const pageSize = 100;
const maxPages = 10;
const laterMs = 5_000;
/** How often a part may be turned away while Discord answers other calls: ten minutes. */
const maxRejected = 10;
const maxKept = 1_000;

/** Makes the calls for parts, and finds out what became of those that were cut off. */
export class Sender {
  readonly #deps: SenderDeps;
  /** How often each part was turned away while Discord answered other calls. */
  readonly #turnedAway = new Map<PartKey, number>();

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  async send(outbound: Outbound, signal: AbortSignal): Promise<SendResult> {
    const { content, route } = outbound;
    const sizes = await sizesOf(content);
    if (sizes === undefined) return failed('rejected', 'the file to send cannot be read');
    const call = toCall(outbound, { sizes, voice: await voiceOf(content) });
    if (call.method === 'none') return tooMuchMarkup(outbound) ?? failed('rejected', call.reason);
    try {
      const answered = await this.#answerInteraction(outbound, signal);
      return answered ?? (await this.#perform(call, signal));
    } catch (error) {
      const attempt = { content, isThread: route.thread !== undefined, isAborted: signal.aborted };
      const told = (await this.#giveUp(outbound, error, signal)) ?? failureOf(error, attempt);
      const result = await this.#withinThread(told, route.thread, signal);
      this.#deps.log.info(
        { partKey: outbound.key, method: call.method, result: result.kind },
        'discord.send-failed',
      );
      return result;
    }
  }

  /** Gives up on a part whose content a filter refuses: it always would, and the conversation would wait for it. */
  async #giveUp({ key }: Outbound, error: unknown, signal: AbortSignal): Promise<SendResult | undefined> {
    const refusal = readRefusal(error);
    if (!refusal || !isBlockedUpstream(refusal) || !(await this.#deps.api.answers(signal))) return undefined;
    const times = (this.#turnedAway.get(key) ?? 0) + 1;
    keepRecent(this.#turnedAway, maxKept, [key, times]);
    return times < maxRejected ? undefined : failed('rejected', refusal.reason);
  }

  /**
   * Lets only a part meant for a public thread go to the parent channel, which more people read. A deleted thread may
   * have been private.
   */
  async #withinThread(
    result: SendResult,
    thread: string | undefined,
    signal: AbortSignal,
  ): Promise<SendResult> {
    if (thread === undefined || result.kind !== 'failed' || result.failure.kind !== 'thread-gone')
      return result;
    try {
      const { type } = channelSchema.parse(await this.#deps.api.channel(thread, signal));
      return type === ChannelType.PrivateThread ? failed('rejected', result.reason) : result;
    } catch (error) {
      const refusal = readRefusal(error);
      const isKnown = refusal?.code !== undefined && refusal.status < 500;
      if (isKnown) return failed('rejected', result.reason);
      return { kind: 'retry', afterMs: refusal?.retryAfterMs ?? 0, reason: reasonOf(error) };
    }
  }

  /** Searches the conversation from a little before the send on. */
  async find(outbound: Outbound, since: number, signal: AbortSignal): Promise<Found> {
    const call = toCall(outbound);
    if (call.method !== 'send') return { kind: 'unknown', reason: 'only messages can be searched for' };
    const found: string[] = [];
    try {
      let after = snowflakeAt(since - clockSlackMs);
      for (let page = 0; page < maxPages; page += 1) {
        const messages = await this.#deps.api.messages(call.channel, { after, limit: pageSize }, signal);
        found.push(...candidates(messages, call.body, this.#deps.bot.id));
        if (messages.length === 0 && !(await this.#canReadHistory(call.channel, signal)))
          return { kind: 'unknown', reason: 'the bot may not read the message history there' };
        if (messages.length < pageSize) return { kind: 'candidates', messageIds: found.map(messageId) };
        after = messages.map(snowflakeOf).reduce(laterSnowflake, after);
      }
      return { kind: 'unknown', reason: 'there have been too many messages since' };
    } catch (error) {
      return notFoundOut(error);
    }
  }

  /** Without the permission, Discord returns an empty list instead of refusing. */
  async #canReadHistory(channel: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#deps.api.messages(channel, { after: '0', limit: 1 }, signal)).length > 0;
  }

  /** Puts the answer to a slash command in the place of "thinking…". Undefined: the part is sent as a message. */
  async #answerInteraction(outbound: Outbound, signal: AbortSignal): Promise<SendResult | undefined> {
    const { content, key, route } = outbound;
    const id = interactionOf(outbound);
    const body = content.kind === 'text' ? textBody(content.text, content.buttons) : undefined;
    if (id === undefined || body === undefined) return undefined;
    const result = await this.#deps.interactions.answer({ id, key, body, signal });
    switch (result.kind) {
      case 'answered':
        return sent(result.messageId);
      case 'taken':
        return undefined;
      case 'unknown': {
        const standing = await this.#findAnswer(targetOf(route), { id, content: body.content }, signal);
        return standing === undefined ? undefined : sent(standing);
      }
      default:
        return result satisfies never;
    }
  }

  /** Finds an answer that an earlier process put there before it died; not in a conversation that can't be read. */
  async #findAnswer(
    channel: string,
    { id, content }: { readonly id: string; readonly content: string },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { api, bot } = this.#deps;
    try {
      const messages = await api.messages(channel, { after: id, limit: pageSize }, signal);
      return answerTo(messages, { interaction: id, content, botId: bot.id });
    } catch (error) {
      const refusal = readRefusal(error);
      if (refusal?.code === undefined || refusal.status >= 500) throw error;
      return undefined;
    }
  }

  async #perform(call: Exclude<Call, { method: 'none' }>, signal: AbortSignal): Promise<SendResult> {
    const { api } = this.#deps;
    const { channel } = call;
    switch (call.method) {
      case 'send':
        return sent(await this.#post(call, signal));
      case 'edit':
        await api.edit(channel, call.message, { body: call.body, signal });
        return sent(call.message);
      case 'delete':
        await api.remove(channel, call.message, signal);
        return sent();
      case 'pin':
      case 'unpin':
        await api.pin(call, signal);
        return sent();
      case 'thread':
        // A thread isn't a message, so it has no receipt.
        await api.openThread(call, signal);
        return sent();
      case 'react':
      case 'unreact':
        await api.react(call, signal);
        return sent();
      default:
        return call satisfies never;
    }
  }

  /**
   * Sends the message; without the quote if the quoted message is refused, and as a file if the voice message is. A
   * refused call sent nothing.
   */
  async #post(call: SendCall, signal: AbortSignal): Promise<string> {
    const { channel, body, files } = call;
    try {
      return await this.#deps.api.send(channel, { body, files }, signal);
    } catch (error) {
      const milder = milderCall(call, error);
      if (milder === undefined) throw error;
      return this.#post(milder, signal);
    }
  }
}

type SendCall = Extract<Call, { method: 'send' }>;

/** Returns the call without what it was refused for; undefined if that isn't known. */
function milderCall(call: SendCall, error: unknown): SendCall | undefined {
  const { body } = call;
  if (body.message_reference !== undefined && isQuoteRefused(error)) {
    const { message_reference: _, ...bare } = body;
    return { ...call, body: bare };
  }
  if (body.flags !== MessageFlags.IsVoiceMessage || !isVoiceRefused(error)) return undefined;
  const attachments = body.attachments?.map(({ id, filename }) => ({ id, filename }));
  return {
    ...call,
    body: { ...body, flags: MessageFlags.SuppressEmbeds, ...(attachments && { attachments }) },
  };
}

/** Reads the sound of a voice message; undefined: it is sent as a file. */
async function voiceOf(content: OutboundContent): Promise<Voice | undefined> {
  if (content.kind !== 'media' || !content.asVoice || content.caption) return undefined;
  const [file] = filesOf(content);
  return file && readVoice(file.path);
}

function notFoundOut(error: unknown): Found {
  const refusal = readRefusal(error);
  const reason = reasonOf(error);
  if (refusal?.retryAfterMs !== undefined) return { kind: 'later', afterMs: refusal.retryAfterMs, reason };
  if (refusal?.code !== undefined && refusal.status < 500 && refusal.status !== 401)
    return { kind: 'unknown', reason };
  return { kind: 'later', afterMs: laterMs, reason, isOutage: neverLeft(error) };
}

/** A text that is too long only because of its markup is sent without it; core splits texts so that this is rare. */
function tooMuchMarkup({ content }: Outbound): SendResult | undefined {
  if (content.kind !== 'text' && content.kind !== 'edit') return undefined;
  if (content.text.spans.length === 0 || textBody(content.text) !== undefined) return undefined;
  return failed('markup', 'with its markup the text is too long');
}

/** Finds the bot's own messages that could be a part whose send was cut off. Pure. */
const ownMessageSchema = z.object({
  id: z.string().refine(isSnowflake),
  author: z.object({ id: z.string() }),
  content: z.string().catch(''),
  nonce: softText(64),
  attachments: softList(z.object({ filename: z.string() }), 100),
  poll: soft(z.object({ question: z.object({ text: z.string() }) })),
  interaction_metadata: soft(z.object({ id: z.string() })),
});
type OwnMessage = z.output<typeof ownMessageSchema>;

/** Returns ids, oldest first. The same nonce is a match; where the history doesn't show nonces, the text decides. */
function candidates(messages: readonly unknown[], body: SendBody, botId: string): readonly string[] {
  const own = ownMessages(messages, botId);
  const known = own.filter(({ nonce }) => nonce === body.nonce);
  const alike = own.filter((message) => message.nonce === undefined && readsTheSame(message, body));
  return (known.length > 0 ? known : alike).map(({ id }) => id);
}

/** Returns the message that answers the interaction with this text, if it exists. */
function answerTo(
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

function readsTheSame({ content, attachments, poll }: OwnMessage, body: SendBody): boolean {
  const files = (body.attachments ?? []).map(({ filename }) => filename);
  return (
    content === body.content.trim() &&
    poll?.question.text === body.poll?.question.text &&
    attachments.length === files.length &&
    attachments.every(({ filename }, index) => filename === files[index])
  );
}

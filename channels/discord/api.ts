import {
  ChannelType,
  type InteractionResponseType,
  type InternalRequest,
  MessageFlags,
  REST,
  type RESTPostAPIChatInputApplicationCommandsJSONBody,
  RequestMethod,
  Routes,
} from 'discord.js';
import { z } from 'zod';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { DiscordConfig } from './config.ts';
import { readRefusal } from './failures.ts';
import type { SendBody, TextBody } from './outbound.ts';
import { idSchema, userSchema } from './payload-schema.ts';
import { fieldsOf } from './raw-fields.ts';
import { makeRequest } from './rest-request.ts';
import { type UploadFile, UploadForm } from './upload-form.ts';

const messageIdSchema = z.object({ id: idSchema });
const listSchema = z.array(z.unknown());
const objectSchema = z.record(z.string(), z.unknown());
const guildsSchema = z.array(z.object({ id: idSchema }));
const threadsSchema = z.object({ threads: listSchema });
const applicationSchema = z.object({ id: idSchema, flags: z.int().catch(0) });
const originalSchema = z.object({
  id: idSchema,
  content: z.string().default(''),
  flags: z.int().default(0),
});

export type HistoryQuery = { readonly after: string; readonly limit: number };

/** A global slash command. */
export type ApplicationCommand = RESTPostAPIChatInputApplicationCommandsJSONBody;

/** How an interaction is acknowledged before it is answered. */
export type Deferral =
  | InteractionResponseType.DeferredChannelMessageWithSource
  | InteractionResponseType.DeferredMessageUpdate;

/**
 * The REST calls of this channel. Each is made once and ends after `callTimeoutMs` at the latest. The library's own
 * retries are off, because they would post again what may already have arrived. A rate limit is thrown, so that the
 * part waits in the outbox and not in memory. The library still enforces the limits: a call over them is never sent.
 */
export class DiscordApi {
  readonly rest: REST;
  readonly #token: string;
  readonly #callTimeoutMs: number;

  constructor({ token, apiBase, callTimeoutMs }: DiscordConfig) {
    this.#token = token;
    this.#callTimeoutMs = callTimeoutMs;
    this.rest = new REST({
      api: apiBase,
      version: '10',
      retries: 0,
      timeout: callTimeoutMs,
      offset: 0,
      rejectOnRateLimit: () => true,
      makeRequest,
    });
  }

  async me(signal: AbortSignal) {
    return userSchema.parse(await this.#call(RequestMethod.Get, Routes.user(), { signal }));
  }

  /** Says whether Discord itself answers now, even with a refusal: then nothing in front of it blocks every call. */
  answers(signal: AbortSignal): Promise<boolean> {
    return this.me(signal).then(
      () => true,
      (error: unknown) => readRefusal(error)?.code !== undefined,
    );
  }

  async application(signal: AbortSignal) {
    return applicationSchema.parse(
      await this.#call(RequestMethod.Get, Routes.currentApplication(), { signal }),
    );
  }

  /** Returns the gateway's address and how many more sessions may be started there. */
  gatewayBot(signal: AbortSignal): Promise<unknown> {
    return this.#call(RequestMethod.Get, Routes.gatewayBot(), { signal });
  }

  channel(id: string, signal: AbortSignal): Promise<unknown> {
    return this.#call(RequestMethod.Get, Routes.channel(id), { signal });
  }

  /** Returns the guilds that the bot is in, 200 at most. */
  async guilds(signal: AbortSignal) {
    return guildsSchema.parse(await this.#call(RequestMethod.Get, Routes.userGuilds(), { signal }));
  }

  /** Returns a guild in the shape in which the gateway reports it, with one of its members: the bot. */
  async guild(id: string, member: string, signal: AbortSignal) {
    const [guild, channels, active, own] = await Promise.all(
      [
        Routes.guild(id),
        Routes.guildChannels(id),
        Routes.guildActiveThreads(id),
        Routes.guildMember(id, member),
      ].map((route) => this.#call(RequestMethod.Get, route, { signal })),
    );
    const { threads } = threadsSchema.parse(active);
    const { joined_at } = fieldsOf(own);
    return {
      ...objectSchema.parse(guild),
      joined_at,
      channels: listSchema.parse(channels),
      threads,
      members: [own],
    };
  }

  message(channel: string, id: string, signal: AbortSignal): Promise<unknown> {
    return this.#call(RequestMethod.Get, Routes.channelMessage(channel, id), { signal });
  }

  /** Returns the messages newest first, whatever the query. */
  async messages(channel: string, { after, limit }: HistoryQuery, signal: AbortSignal) {
    const query = new URLSearchParams({ after, limit: String(limit) });
    return listSchema.parse(
      await this.#call(RequestMethod.Get, Routes.channelMessages(channel), { query, signal }),
    );
  }

  /** Resolves with the id of the message: a new one, or that of an earlier attempt. */
  async send(
    channel: string,
    { body, files }: { readonly body: SendBody; readonly files?: readonly UploadFile[] | undefined },
    signal: AbortSignal,
  ): Promise<string> {
    const form = files && { body: new UploadForm(body, files), passThroughBody: true };
    const options = { ...(form ?? { body }), signal };
    const answer = await this.#call(RequestMethod.Post, Routes.channelMessages(channel), options);
    return messageIdSchema.parse(answer).id;
  }

  async edit(channel: string, message: string, { body, signal }: EditRequest): Promise<void> {
    await this.#call(RequestMethod.Patch, Routes.channelMessage(channel, message), { body, signal });
  }

  async remove(channel: string, message: string, signal: AbortSignal): Promise<void> {
    await this.#call(RequestMethod.Delete, Routes.channelMessage(channel, message), { signal });
  }

  async pin(
    { method, channel, message }: { method: 'pin' | 'unpin'; channel: string; message: string },
    signal: AbortSignal,
  ): Promise<void> {
    const verb = method === 'pin' ? RequestMethod.Put : RequestMethod.Delete;
    await this.#call(verb, Routes.channelMessagesPin(channel, message), { signal });
  }

  async openThread(
    { channel, message, name }: { channel: string; message?: string; name: string },
    signal: AbortSignal,
  ): Promise<void> {
    const body = message === undefined ? { name, type: ChannelType.PublicThread } : { name };
    await this.#call(RequestMethod.Post, Routes.threads(channel, message), { body, signal });
  }

  /** `emoji`: as encoded for the path. */
  async react(
    target: { method: 'react' | 'unreact'; channel: string; message: string; emoji: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { channel, message, emoji } = target;
    const method = target.method === 'react' ? RequestMethod.Put : RequestMethod.Delete;
    await this.#call(method, Routes.channelMessageOwnReaction(channel, message, emoji), { signal });
  }

  async type(channel: string, signal: AbortSignal): Promise<void> {
    await this.#call(RequestMethod.Post, Routes.channelTyping(channel), { signal });
  }

  async defer(id: string, token: string, type: Deferral): Promise<void> {
    await this.#call(RequestMethod.Post, Routes.interactionCallback(id, token), {
      body: { type },
      auth: false,
    });
  }

  async editOriginal(application: string, token: string, { body, signal }: EditRequest): Promise<string> {
    const route = Routes.webhookMessage(application, token);
    return messageIdSchema.parse(await this.#call(RequestMethod.Patch, route, { body, signal, auth: false }))
      .id;
  }

  /** Shows a text only to the person behind the interaction. */
  async tellPrivately(application: string, token: string, content: string): Promise<void> {
    const body = { content, flags: MessageFlags.Ephemeral, allowed_mentions: { parse: [] } };
    await this.#call(RequestMethod.Post, Routes.webhook(application, token), { body, auth: false });
  }

  /** Returns the message in the answer's place: "thinking…", or the answer itself. */
  async original(application: string, token: string, signal?: AbortSignal) {
    const route = Routes.webhookMessage(application, token);
    const options = { auth: false, ...(signal && { signal }) };
    const { flags, ...message } = originalSchema.parse(await this.#call(RequestMethod.Get, route, options));
    return { ...message, isThinking: (flags & MessageFlags.Loading) !== 0 };
  }

  async removeOriginal(application: string, token: string): Promise<void> {
    await this.#call(RequestMethod.Delete, Routes.webhookMessage(application, token), { auth: false });
  }

  async setCommands(application: string, body: readonly ApplicationCommand[], signal: AbortSignal) {
    await this.#call(RequestMethod.Put, Routes.applicationCommands(application), { body, signal });
  }

  #call(
    method: RequestMethod,
    fullRoute: `/${string}`,
    {
      signal: outer,
      ...options
    }: Pick<InternalRequest, 'body' | 'passThroughBody' | 'query' | 'auth'> & {
      readonly signal?: AbortSignal;
    },
  ): Promise<unknown> {
    // After a 401 the library forgets the token, and every later call would fail with its own error.
    this.rest.setToken(this.#token);
    // The library's own timeout only covers the headers: a body could be endless. It also never releases the signal.
    return withLimit(this.#callTimeoutMs, outer, (signal) =>
      this.rest.request({ method, fullRoute, ...options, signal }),
    );
  }
}

type EditRequest = { readonly body: TextBody; readonly signal: AbortSignal };

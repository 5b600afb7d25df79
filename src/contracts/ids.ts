/**
 * Branded ids. A brand costs nothing at run time and keeps a peer id from being passed where a
 * conversation id belongs. Only the constructors below (and the session-key codec) create them.
 */
declare const brand: unique symbol;
/** A string that is only assignable to its own kind of id. */
export type Brand<Name extends string> = string & { readonly [brand]: Name };

/** A network, for example `telegram`. Scope: global. */
export type ChannelId = Brand<'ChannelId'>;
/** A bot account on one network: the platform's own stable id, never a token. Scope: channel. */
export type AccountId = Brand<'AccountId'>;
/** A chat, group or channel on the platform. Scope: account. */
export type ConversationId = Brand<'ConversationId'>;
/** A thread or topic inside a conversation. Scope: conversation. */
export type ThreadId = Brand<'ThreadId'>;
/** A person on the platform: the immutable id, never a name. Scope: channel. */
export type PeerId = Brand<'PeerId'>;
/** A message on the platform. Scope: conversation. */
export type MessageId = Brand<'MessageId'>;
/** Names one platform event forever: kind, message id and version. Scope: bot account. */
export type EventKey = Brand<'EventKey'>;

/** An agent profile, for example `main`. `agent` is reserved. */
export type AgentId = Brand<'AgentId'>;
/** Names one conversation of one agent; only `contracts/session-key.ts` creates or parses it. */
export type SessionKey = Brand<'SessionKey'>;
/** One session under a key; `/new` starts another under the same key. */
export type SessionId = Brand<'SessionId'>;
/** One run of the agent loop. */
export type RunId = Brand<'RunId'>;
/** A row of the transcript. */
export type TranscriptId = Brand<'TranscriptId'>;
/** A row of a lane's inbox. */
export type InboxId = Brand<'InboxId'>;
/** One part of a reply: run, ordinal and target. The idempotency key of its delivery. */
export type PartKey = Brand<'PartKey'>;

/** Brands a network's name. */
export const channelId = (value: string) => value as ChannelId;
/** Brands a bot account's id as its platform gave it. */
export const accountId = (value: string) => value as AccountId;
/** Brands a chat's id as its platform gave it. */
export const conversationId = (value: string) => value as ConversationId;
/** Brands a thread's id as its platform gave it. */
export const threadId = (value: string) => value as ThreadId;
/** Brands a person's immutable id as its platform gave it. */
export const peerId = (value: string) => value as PeerId;
/** Brands a message's id as its platform gave it. */
export const messageId = (value: string) => value as MessageId;
/** Brands an event key that a channel made. */
export const eventKey = (value: string) => value as EventKey;
/** Brands an agent's id from the configuration. */
export const agentId = (value: string) => value as AgentId;
/** Brands a session's id. */
export const sessionId = (value: string) => value as SessionId;
/** Brands a run's id. */
export const runId = (value: string) => value as RunId;
/** Brands the id of a transcript row. */
export const transcriptId = (value: string) => value as TranscriptId;
/** Brands the id of an inbox item. */
export const inboxId = (value: string) => value as InboxId;
/** Brands the key of an outbox part. */
export const partKey = (value: string) => value as PartKey;

/**
 * Names one configured connection: `telegram`, or `telegram.work` for a named account. Used in lists, in the
 * log, as the account's folder and in the addresses of its webhooks. Channel ids contain no dot.
 */
export function connectionName(channel: ChannelId, accountName: string | undefined): string {
  return accountName === undefined ? channel : `${channel}.${accountName}`;
}

/** Returns the channel of a connection's name: `telegram` for `telegram.work`. */
export function channelOfConnection(line: string): string {
  return line.split('.', 1)[0] ?? line;
}

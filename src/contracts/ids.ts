/**
 * Branded ids. A brand costs nothing at run time and keeps a peer id from being passed where a
 * conversation id belongs. Only the constructors below (and the session-key codec) make them.
 */
declare const brand: unique symbol;
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
/** Names one platform event for ever: kind, message id and version. Scope: bot account. */
export type EventKey = Brand<'EventKey'>;

/** An agent profile, for example `main`. `agent` is reserved. */
export type AgentId = Brand<'AgentId'>;
/** Names one conversation of one agent; only `sessions/session-key.ts` makes or reads it. */
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

export const channelId = (value: string) => value as ChannelId;
export const accountId = (value: string) => value as AccountId;
export const conversationId = (value: string) => value as ConversationId;
export const threadId = (value: string) => value as ThreadId;
export const peerId = (value: string) => value as PeerId;
export const messageId = (value: string) => value as MessageId;
export const eventKey = (value: string) => value as EventKey;
export const agentId = (value: string) => value as AgentId;
export const sessionId = (value: string) => value as SessionId;
export const runId = (value: string) => value as RunId;
export const transcriptId = (value: string) => value as TranscriptId;
export const inboxId = (value: string) => value as InboxId;
export const partKey = (value: string) => value as PartKey;

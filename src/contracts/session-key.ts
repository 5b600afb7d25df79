/**
 * The only codec of session keys (spec 2). Everywhere else a key is an opaque string. `:`, `%`, `@` and `*` are
 * percent-encoded in segments, so a bare `*` always means "any". Every conversation has exactly one spelling: a key
 * that isn't canonical doesn't parse.
 */
import { ParleyError } from './errors.ts';
import {
  type AccountId,
  type AgentId,
  accountId,
  agentId,
  type ChannelId,
  type ConversationId,
  channelId,
  conversationId,
  type PeerId,
  peerId,
  type SessionKey,
  type ThreadId,
  threadId,
} from './ids.ts';

/** A conversation with one person. `null` stands for a segment that the DM scope ignores, written `*`. */
export type DirectKeyParts = {
  readonly kind: 'direct';
  readonly agent: AgentId;
  readonly account: AccountId | null;
  readonly channel: ChannelId | null;
  readonly peer: PeerId | null;
};

/** A conversation of several people. */
export type GroupKeyParts = {
  readonly kind: 'group';
  readonly agent: AgentId;
  readonly account: AccountId;
  readonly channel: ChannelId;
  readonly group: ConversationId;
};

/** A thread or topic of a group or of a direct conversation. */
export type ThreadKeyParts = {
  readonly kind: 'thread';
  readonly within: DirectKeyParts | GroupKeyParts;
  readonly thread: ThreadId;
};

/** A child session. Depth and parent are readable here, but rights come from the stored session. */
export type SubAgentKeyParts = {
  readonly kind: 'sub-agent';
  readonly agent: AgentId;
  /** 1 for a child of a conversation, 2 for its child. */
  readonly depth: number;
  readonly child: string;
  readonly parent: SessionKey;
};

export type SessionKeyParts = DirectKeyParts | GroupKeyParts | ThreadKeyParts | SubAgentKeyParts;

/** First segment of every sub-agent key, so no agent may have this id. */
const reservedAgent = 'agent';

/**
 * Formats the key. Throws ParleyError `invalid_input` for parts that no conversation can have: an empty id, the
 * reserved agent id, a depth that isn't a positive integer, or a parent that isn't a key.
 */
export function formatSessionKey(parts: SessionKeyParts): SessionKey {
  switch (parts.kind) {
    case 'direct':
    case 'group':
      return formatConversation(parts) as SessionKey;
    case 'thread':
      return `${formatConversation(parts.within)}:thread:${encode(parts.thread)}` as SessionKey;
    case 'sub-agent':
      return formatSubAgent(parts) as SessionKey;
    default:
      return parts satisfies never;
  }
}

/** Parses a key; undefined for any text that `formatSessionKey` couldn't have produced. */
export function parseSessionKey(text: string): SessionKeyParts | undefined {
  const outermost = parseOneLevel(text);
  // A loop, not recursion: the text may come from outside and be nested as deep as it is long.
  let level = outermost;
  while (level?.kind === 'sub-agent') level = parseOneLevel(level.parent);
  return level === undefined ? undefined : outermost;
}

/** Returns the key of the conversation that a sub-agent of any depth belongs to, and any other text unchanged. */
export function topLaneOf(key: string): string {
  let top = key;
  for (let parts = parseOneLevel(key); parts?.kind === 'sub-agent'; parts = parseOneLevel(top))
    top = parts.parent;
  return top;
}

function formatConversation(parts: DirectKeyParts | GroupKeyParts): string {
  const agent = encodeAgent(parts.agent);
  if (parts.kind === 'group') {
    return `${agent}:${encode(parts.account)}:${encode(parts.channel)}:group:${encode(parts.group)}`;
  }
  return `${agent}:${encodeOrAny(parts.account)}:${encodeOrAny(parts.channel)}:dm:${encodeOrAny(parts.peer)}`;
}

function formatSubAgent({ agent, depth, child, parent }: SubAgentKeyParts): string {
  if (!Number.isSafeInteger(depth) || depth < 1) throw invalid(`sub-agent depth ${depth}`);
  if (parseSessionKey(parent) === undefined) throw invalid(`parent key "${parent}"`);
  return `${reservedAgent}:${encodeAgent(agent)}:sub:${depth}:${encode(child)}@${parent}`;
}

function parseOneLevel(text: string): SessionKeyParts | undefined {
  return text.startsWith(`${reservedAgent}:`) ? parseSubAgent(text) : parseConversation(text);
}

function parseConversation(text: string): SessionKeyParts | undefined {
  const segments = text.split(':', 8);
  const [agentText, account, channel, kind, last, threadWord, threadText] = segments;
  if (segments.length !== 5 && segments.length !== 7) return undefined;
  const agent = decodeAgent(agentText);
  if (agent === undefined) return undefined;
  const within =
    kind === 'dm'
      ? parseDirect(agent, [account, channel, last])
      : kind === 'group'
        ? parseGroup(agent, [account, channel, last])
        : undefined;
  if (within === undefined || segments.length === 5) return within;
  const thread = threadWord === 'thread' ? decode(threadText) : undefined;
  return thread === undefined ? undefined : { kind: 'thread', within, thread: threadId(thread) };
}

type ThreeSegments = readonly [string | undefined, string | undefined, string | undefined];

function parseDirect(agent: AgentId, segments: ThreeSegments): DirectKeyParts | undefined {
  const [account, channel, peer] = segments.map(decodeOrAny);
  if (account === undefined || channel === undefined || peer === undefined) return undefined;
  return {
    kind: 'direct',
    agent,
    account: account === null ? null : accountId(account),
    channel: channel === null ? null : channelId(channel),
    peer: peer === null ? null : peerId(peer),
  };
}

function parseGroup(agent: AgentId, segments: ThreeSegments): GroupKeyParts | undefined {
  const [account, channel, group] = segments.map(decode);
  if (account === undefined || channel === undefined || group === undefined) return undefined;
  return {
    kind: 'group',
    agent,
    account: accountId(account),
    channel: channelId(channel),
    group: conversationId(group),
  };
}

const subAgentHead = /^agent:([^:]+):sub:([1-9][0-9]{0,15}):([^:@]+)@/;

function parseSubAgent(text: string): SubAgentKeyParts | undefined {
  const head = subAgentHead.exec(text);
  if (head === null) return undefined;
  const [whole, agentText, depthText, childText] = head;
  const agent = decodeAgent(agentText);
  const child = decode(childText);
  const depth = Number(depthText);
  if (agent === undefined || child === undefined || !Number.isSafeInteger(depth)) return undefined;
  // `parseSessionKey` checks this parent before returning the parts.
  return { kind: 'sub-agent', agent, depth, child, parent: text.slice(whole.length) as SessionKey };
}

const escapes: Readonly<Record<string, string>> = { ':': '%3A', '%': '%25', '@': '%40', '*': '%2A' };
const canonicalSegment = /^(?:[^:%@*]|%3A|%25|%40|%2A)+$/;

function encode(value: string): string {
  if (value === '') throw invalid('an empty id');
  return value.replace(/[:%@*]/g, (character) => escapes[character] ?? character);
}

function decode(segment: string | undefined): string | undefined {
  if (segment === undefined || !canonicalSegment.test(segment)) return undefined;
  return segment.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function encodeOrAny(value: string | null): string {
  return value === null ? '*' : encode(value);
}

function decodeOrAny(segment: string | undefined): string | null | undefined {
  return segment === '*' ? null : decode(segment);
}

function encodeAgent(agent: AgentId): string {
  if (agent === reservedAgent) throw invalid(`agent id "${reservedAgent}", which is reserved`);
  return encode(agent);
}

function decodeAgent(segment: string | undefined): AgentId | undefined {
  const agent = decode(segment);
  return agent === undefined || agent === reservedAgent ? undefined : agentId(agent);
}

function invalid(what: string): ParleyError {
  return new ParleyError('invalid_input', `A session key can't contain ${what}.`);
}

import { createHash } from 'node:crypto';
import { blocksOf, type WireBody, type WireMessage } from './wire.ts';

/**
 * Signs a thinking block. The signature contains the text's digest, to detect a changed block, and the digest of
 * everything before the block, to detect a moved one. Stateless: any server can check it.
 */
export function signThinking(thinking: string, body: WireBody): string {
  return `${digest(`text:${thinking}`)}.${prefixDigest(body, body.messages)}`;
}

export function isGenuine(thinking: string, signature: string): boolean {
  return signature.split('.')[0] === digest(`text:${thinking}`);
}

/** Says whether the block still follows the conversation it was written in. `before`: the messages that precede it. */
export function isInPlace(signature: string, body: WireBody, before: readonly WireMessage[]): boolean {
  return signature.split('.')[1] === prefixDigest(body, before);
}

function prefixDigest(body: WireBody, messages: readonly WireMessage[]): string {
  const withoutMarks = (key: string, value: unknown) => (key === 'cache_control' ? undefined : value);
  const prefix = {
    system: body.system,
    tools: body.tools,
    messages: messages.map((message) => ({
      role: message.role,
      blocks: blocksOf(message).filter((block) => block.type !== 'thinking'),
    })),
  };
  return digest(JSON.stringify(prefix, withoutMarks));
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 24);
}

import { createHash } from 'node:crypto';
import { blocksOf, type WireBody, type WireMessage } from './wire.ts';

/**
 * Signatures of thinking blocks. They carry the text's digest, so that a changed block is known, and
 * the digest of everything before the block, so that a moved one is. Stateless: any server checks them.
 */
export function signThinking(thinking: string, body: WireBody): string {
  return `${digest(`text:${thinking}`)}.${prefixDigest(body, body.messages)}`;
}

export function isGenuine(thinking: string, signature: string): boolean {
  return signature.split('.')[0] === digest(`text:${thinking}`);
}

/** Whether the block still follows the conversation it was written in. `before`: the messages ahead of it. */
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

/**
 * Reasoning is only sent back to its author: the configured provider and the model that was asked there. No other
 * can verify its signature, and some refuse what they can't verify, even if they serve a model of that name.
 */
import type { AssistantBlock, LlmMessage, ModelRequest } from '#contracts/model.ts';
import type { ProviderOptions } from './provider-options.ts';

/** Returns the author, with which signatures begin. */
export function authorOf({ name, model }: Pick<ProviderOptions, 'name' | 'model'>, kind: string): string {
  return `${name ?? kind}/${model}`;
}

/** Returns the signature as stored: its author, then the provider's own signature. */
export function signedBy(author: string, signature: string): string {
  return `${author}\n${signature}`;
}

/** Returns the request with only the author's own reasoning, under the provider's own signature. Pure. */
export function withOwnThinking(request: ModelRequest, author: string): ModelRequest {
  const model = author.slice(author.indexOf('/') + 1);
  const own = (block: AssistantBlock): readonly AssistantBlock[] => {
    if (block.type !== 'thinking') return [block];
    const isOwn = block.signature.startsWith(`${author}\n`);
    return isOwn ? [{ ...block, signature: block.signature.slice(author.length + 1), model }] : [];
  };
  const messages = request.messages.map(
    (message): LlmMessage =>
      message.role === 'assistant' && message.content.some(({ type }) => type === 'thinking')
        ? { ...message, content: message.content.flatMap(own) }
        : message,
  );
  return { ...request, messages };
}

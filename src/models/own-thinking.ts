/**
 * Reasoning goes back to its writer only: the provider as it is configured, and the model that was asked there.
 * No other can check its signature, and some refuse what they can't check, though they serve a model of that name.
 */
import type { AssistantBlock, LlmMessage, ModelRequest } from '#contracts/model.ts';
import type { ProviderOptions } from './provider-options.ts';

/** Names who writes, as signatures begin. */
export function authorOf({ name, model }: Pick<ProviderOptions, 'name' | 'model'>, kind: string): string {
  return `${name ?? kind}/${model}`;
}

/** The signature as it is stored: its author, then the provider's own words. */
export function signedBy(author: string, signature: string): string {
  return `${author}\n${signature}`;
}

/** The request with the author's own reasoning, signed in the provider's own words, and no other. Pure. */
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

import type { AssistantBlock, LlmMessage, LlmProvider, ModelRequest, UserBlock } from '#contracts/model.ts';

/**
 * Returns the request for a model that doesn't support tools: none is offered, the instructions don't mention them, and
 * earlier calls and their results are described in text. Pure; messages keep their positions.
 */
export function withoutTools(request: ModelRequest): ModelRequest {
  return {
    ...request,
    system: request.system.filter(({ isAboutTools }) => !isAboutTools),
    messages: request.messages.map(toldInWords),
    tools: [],
  };
}

/** Returns a provider whose model is never offered tools. */
export function neverOfferingTools(provider: LlmProvider): LlmProvider {
  return {
    ...provider,
    stream: (request, signal) => provider.stream(withoutTools(request), signal),
    send: (request, ...rest) => provider.send(withoutTools(request), ...rest),
    model: () => ({ ...provider.model(), takesTools: false }),
  };
}

function toldInWords(message: LlmMessage): LlmMessage {
  return message.role === 'assistant'
    ? { ...message, content: message.content.map(callInWords) }
    : { ...message, content: message.content.map(resultInWords) };
}

function callInWords(block: AssistantBlock): AssistantBlock {
  if (block.type !== 'tool_use') return block;
  return { type: 'text', text: `[used ${block.name}: ${JSON.stringify(block.input ?? {})}]` };
}

function resultInWords(block: UserBlock): UserBlock {
  if (block.type !== 'tool_result') return block;
  return { type: 'text', text: `[${block.isError ? 'it failed' : 'it returned'}: ${block.content}]` };
}

/**
 * A model request in the format of Chat Completions. Pure. A tool's result is a separate message there, so one
 * message may become several; `sources` maps each back to its original.
 */
import type {
  ChatCompletionContentPart,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions';
import { isBlank } from '#channel-kit/clean-text.ts';
import type { AssistantBlock, LlmMessage, ModelRequest, UserBlock } from '#contracts/model.ts';
import type { AskTerms } from '../asker.ts';
import { hasDocuments, type RequestFeatures, UNREASONED, UNSIGNED_CALLS } from '../unsupported.ts';
import { isSameModel, type OpenAiModel } from './openai-models.ts';
import { extraContentIn, unsigned } from './openai-tool-calls.ts';

export type OpenAiRequest = RequestFeatures & {
  /** Without `stream` and what belongs to it. */
  readonly wire: ChatCompletionCreateParamsNonStreaming;
  /** Parameters with which a stream requests its usage, which some servers refuse. */
  readonly withUsage: { readonly stream_options?: { readonly include_usage: true } };
  readonly maxTokens: number;
  /** Index of the request's message for each message on the wire; -1 for the system prompt. */
  readonly sources: readonly number[];
};

type Terms = AskTerms<OpenAiModel>;

/** Marks a signature that contains reasoning to be sent back under the wire's own field name. */
export const REASONING_DETAILS = 'reasoning_details:';
export const REASONING_CONTENT = 'reasoning_content';

export function toOpenAiRequest(request: ModelRequest, terms: Terms): OpenAiRequest {
  const { model, unsupported, isStreamed } = terms;
  const system = request.system.map(({ text }) => text).filter((text) => !isBlank(text));
  const wire: ChatCompletionMessageParam[] = [];
  const sources: number[] = [];
  const add = (source: number, messages: readonly ChatCompletionMessageParam[]) => {
    for (const message of messages) {
      wire.push(message);
      sources.push(source);
    }
  };
  if (system.length > 0) add(-1, [{ role: 'system', content: system.join('\n\n') }]);
  for (const [index, message] of request.messages.entries()) add(index, messagesOf(message, terms));
  const maxTokens = Math.min(model.maxOutputTokens, model.answerTokens, Math.max(1, request.maxTokens));
  const effort = effortOf(request, model);
  const limit = limitOf(maxTokens, terms);
  const withEffort =
    effort !== undefined && !unsupported.has('reasoning_effort') ? { reasoning_effort: effort } : {};
  const withUsage =
    isStreamed && !unsupported.has('stream_options')
      ? { stream_options: { include_usage: true } as const }
      : {};
  return {
    sources,
    maxTokens,
    hasImages: wire.some(({ content }) => Array.isArray(content)),
    hasDocuments: hasDocuments(request),
    hasTools: request.tools.length > 0,
    hasSystem: system.length > 0,
    params: Object.keys({ ...limit, ...withEffort, ...withUsage }),
    withUsage,
    wire: {
      model: model.id,
      messages: wire,
      ...limit,
      ...(request.tools.length > 0 && { tools: request.tools.map(toTool) }),
      ...withEffort,
    },
  };
}

/** Returns the limit under a name that the server accepts; some accept none this large and apply their own. */
function limitOf(tokens: number, { model, unsupported }: Terms) {
  const names = [model.limitField, 'max_tokens', 'max_completion_tokens'] as const;
  const name = names.find((each) => !unsupported.has(each));
  return name === undefined ? {} : { [name]: tokens };
}

function effortOf({ reasoning, tools }: ModelRequest, model: OpenAiModel) {
  if (reasoning === 'off' || (model.reasonsWithoutTools && tools.length > 0)) return model.effortWhenOff;
  return model.canThink ? reasoning : undefined;
}

function toTool({ name, description, inputSchema }: ModelRequest['tools'][number]): ChatCompletionTool {
  const parameters = { ...inputSchema, type: 'object' };
  return { type: 'function', function: { name, description, parameters } };
}

function messagesOf(message: LlmMessage, terms: Terms): readonly ChatCompletionMessageParam[] {
  return message.role === 'assistant'
    ? [assistantMessage(message.content, terms)]
    : userMessages(message.content);
}

/** Puts results first, because they must directly follow the message with the calls. */
function userMessages(blocks: readonly UserBlock[]): readonly ChatCompletionMessageParam[] {
  const results = blocks.flatMap((block): ChatCompletionMessageParam[] => {
    if (block.type !== 'tool_result') return [];
    const content = block.isError ? `Error: ${block.content}` : block.content;
    return [{ role: 'tool', tool_call_id: block.toolCallId, content }];
  });
  const parts = blocks.flatMap(partOf);
  if (parts.length === 0) return results.length > 0 ? results : [{ role: 'user', content: '(empty)' }];
  // Servers for text models accept only a plain string.
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const content = texts.length === parts.length ? texts.join('\n\n') : parts;
  return [...results, { role: 'user', content }];
}

function partOf(block: UserBlock): ChatCompletionContentPart[] {
  switch (block.type) {
    case 'text':
      return isBlank(block.text) ? [] : [{ type: 'text', text: block.text }];
    case 'image':
      return [{ type: 'image_url', image_url: { url: `data:${block.mimeType};base64,${block.base64}` } }];
    case 'document': {
      const file = {
        filename: `${block.name}.pdf`,
        file_data: `data:application/pdf;base64,${block.base64}`,
      };
      return [{ type: 'file', file }];
    }
    case 'tool_result':
      return [];
    default:
      return block satisfies never;
  }
}

type WireCall = {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
  extra_content?: unknown;
};

/** Fields for servers that want their model's reasoning back. */
type ReasoningFields = { reasoning_details?: unknown[]; reasoning_content?: string };

function assistantMessage(
  blocks: readonly AssistantBlock[],
  { model, unsupported }: Terms,
): ChatCompletionMessageParam {
  const texts: string[] = [];
  const calls: WireCall[] = [];
  const reasoned: ReasoningFields = {};
  for (const block of blocks) {
    if (block.type === 'text' && !isBlank(block.text)) texts.push(block.text);
    if (block.type === 'tool_use') calls.push(toCall(block, model));
    if (block.type === 'thinking' && isSameModel(block.model, model.id)) giveBack(block, reasoned);
  }
  // DeepSeek doesn't accept an empty one.
  if (unsupported.has(UNREASONED)) reasoned.reasoning_content ||= ' ';
  // The first of several parallel calls carries the signature for all of them.
  const [first] = calls;
  if (first && unsupported.has(UNSIGNED_CALLS)) first.extra_content ??= unsigned;
  const content = texts.length > 0 ? texts.join('') : calls.length > 0 ? null : '(empty)';
  return { role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }), ...reasoned };
}

function toCall(
  { id, name, input, signature }: Extract<AssistantBlock, { type: 'tool_use' }>,
  model: OpenAiModel,
): WireCall {
  const called = {
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(input ?? {}) },
  } as const;
  const extra = extraContentIn(signature, model.id);
  return extra === undefined ? called : { ...called, extra_content: extra };
}

function giveBack(
  { signature, thinking }: Extract<AssistantBlock, { type: 'thinking' }>,
  reasoned: ReasoningFields,
): void {
  if (signature === REASONING_CONTENT) {
    reasoned.reasoning_content = (reasoned.reasoning_content ?? '') + thinking;
    return;
  }
  if (!signature.startsWith(REASONING_DETAILS)) return;
  // Written by openai-events.ts; the store keeps it unchanged.
  const details = JSON.parse(signature.slice(REASONING_DETAILS.length)) as unknown[];
  reasoned.reasoning_details = [...(reasoned.reasoning_details ?? []), ...details];
}

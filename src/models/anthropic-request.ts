/**
 * A model request in Anthropic's shape. Pure. Decides the cache breakpoints (tools, stable system, the
 * last two user turns: four, the most there may be) and how a model is told to think or not to.
 */
import type {
  ContentBlockParam,
  MessageCreateParamsBase,
  MessageParam,
  TextBlockParam,
  ThinkingConfigParam,
  Tool,
  ToolResultBlockParam,
} from '@anthropic-ai/sdk/resources/messages/messages';
import { isBlank } from '#channel-kit/clean-text.ts';
import type { AssistantBlock, LlmMessage, ModelRequest, ToolSpec, UserBlock } from '#contracts/model.ts';
import type { ClaudeModel } from './claude-models.ts';
import { undated } from './prices.ts';

export type AnthropicRequest = {
  readonly params: MessageCreateParamsBase;
  readonly headers: Record<string, string>;
};

/** Marks a signature that is a redacted thinking block's data; see toModelEvents. */
export const REDACTED = 'redacted_thinking:';

const LEAST_BUDGET = 1024;
/** Share of the longest answer that a model with a token budget may think with. */
const BUDGET_SHARE = { low: 0.25, medium: 0.5, high: 0.75 } as const;
const CACHED = { type: 'ephemeral' } as const;
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

export function toAnthropicRequest(request: ModelRequest, model: ClaudeModel): AnthropicRequest {
  const thinking = thinkingOf(request, model);
  const params: MessageCreateParamsBase = {
    model: model.id,
    max_tokens: maxTokensOf(request, model),
    messages: toMessages(request.messages, { model, keepThinking: keepsThinking(thinking, model) }),
  };
  const system = toSystem(request.system);
  if (system.length > 0) params.system = system;
  if (request.tools.length > 0) params.tools = toTools(request.tools);
  if (thinking !== undefined) params.thinking = thinking;
  const effort = effortOf(request, model);
  if (effort !== undefined) params.output_config = { effort };
  const isBound = model.bindsThinking && thinking?.type === 'adaptive';
  return { params, headers: isBound ? { 'anthropic-beta': BINDING_BETA } : {} };
}

function thinkingOf(request: ModelRequest, model: ClaudeModel): ThinkingConfigParam | undefined {
  const { reasoning } = request;
  if (reasoning === 'off') return thinkingOff(model);
  if (model.thinking === 'adaptive') return adaptive(model, 'summarized');
  if (!canResumeThinking(request.messages, model)) return undefined;
  const maxTokens = maxTokensOf(request, model);
  // The answer needs room too: a budget below the API's least is none.
  if (maxTokens < 2 * LEAST_BUDGET) return undefined;
  const budget = Math.max(LEAST_BUDGET, Math.floor(maxTokens * BUDGET_SHARE[reasoning]));
  return { type: 'enabled', budget_tokens: budget };
}

function maxTokensOf({ maxTokens }: ModelRequest, model: ClaudeModel): number {
  return Math.min(model.maxOutputTokens, model.answerTokens, Math.max(1, maxTokens));
}

function thinkingOff(model: ClaudeModel): ThinkingConfigParam | undefined {
  switch (model.thinkingOff) {
    case 'omit':
      return undefined;
    case 'disabled':
    case 'between_tools':
      return { type: model.thinkingOff };
    case 'never':
      return adaptive(model, 'omitted');
    default:
      return model.thinkingOff satisfies never;
  }
}

function adaptive(model: ClaudeModel, display: 'summarized' | 'omitted'): ThinkingConfigParam {
  if (!model.bindsThinking) return { type: 'adaptive', display };
  // Compaction and shortened tool results change what stands before a block.
  // The setting is a beta that the SDK's stable type does not list; it goes with BINDING_BETA.
  const bound = { type: 'adaptive', display, block_binding: { prefix_mismatch_behavior: 'drop_block' } };
  return bound as ThinkingConfigParam;
}

function effortOf({ reasoning }: ModelRequest, model: ClaudeModel): 'low' | 'medium' | 'high' | undefined {
  if (model.thinking !== 'adaptive') return undefined;
  if (reasoning === 'off') return model.thinkingOff === 'never' ? 'low' : undefined;
  return reasoning;
}

/** A model that binds its thinking may refuse old blocks in a request that turns thinking off. */
function keepsThinking(thinking: ThinkingConfigParam | undefined, model: ClaudeModel): boolean {
  return !model.bindsThinking || thinking?.type === 'adaptive';
}

/**
 * With a thinking budget, a turn whose tools were just answered must begin with its thinking. A turn
 * written without (another model, thinking off) is finished without.
 */
function canResumeThinking(messages: readonly LlmMessage[], model: ClaudeModel): boolean {
  const first = messages.findLast((message) => message.role === 'assistant')?.content[0];
  const isOpen = messages.at(-1)?.content.some((block) => block.type === 'tool_result') ?? false;
  return !isOpen || (first?.type === 'thinking' && isBySameModel(first, model));
}

/** Answers name their model with its date. */
function isBySameModel(block: Extract<AssistantBlock, { type: 'thinking' }>, model: ClaudeModel): boolean {
  return undated(block.model) === undated(model.id);
}

function toSystem(blocks: ModelRequest['system']): TextBlockParam[] {
  const filled = blocks.filter((block) => !isBlank(block.text));
  const lastStable = filled.findLastIndex((block) => block.isStable);
  return filled.map((block, index) => ({
    type: 'text',
    text: block.text,
    ...(index === lastStable ? { cache_control: CACHED } : {}),
  }));
}

function toTools(tools: ModelRequest['tools']): Tool[] {
  return tools.map((tool, index) =>
    index === tools.length - 1 ? { ...toTool(tool), cache_control: CACHED } : toTool(tool),
  );
}

/** Every request has the same ones. */
const wireTools = new WeakMap<ToolSpec, Tool>();

function toTool(tool: ToolSpec): Tool {
  const known = wireTools.get(tool);
  if (known) return known;
  const { name, description, inputSchema } = tool;
  const made: Tool = { name, description, input_schema: { ...inputSchema, type: 'object' } };
  wireTools.set(tool, made);
  return made;
}

function toMessages(
  messages: readonly LlmMessage[],
  { model, keepThinking }: { readonly model: ClaudeModel; readonly keepThinking: boolean },
): MessageParam[] {
  const userTurns = messages.flatMap((message, index) => (message.role === 'user' ? [index] : []));
  const cached = new Set(userTurns.slice(-2));
  return messages.map((message, index): MessageParam => {
    if (message.role === 'assistant') {
      const kept = message.content.filter(
        (block) => block.type !== 'thinking' || (keepThinking && isBySameModel(block, model)),
      );
      return { role: 'assistant', content: filled(kept.flatMap(toAssistantBlock)) };
    }
    const content = filled(message.content.flatMap(toUserBlock));
    return { role: 'user', content: cached.has(index) ? withCacheMark(content) : content };
  });
}

/** The API refuses empty messages, and leaving one out would break the alternation. */
function filled(blocks: ContentBlockParam[]): ContentBlockParam[] {
  return blocks.length > 0 ? blocks : [{ type: 'text', text: '(empty)' }];
}

function withCacheMark(blocks: ContentBlockParam[]): ContentBlockParam[] {
  return blocks.map((block, index) =>
    index === blocks.length - 1 ? ({ ...block, cache_control: CACHED } as ContentBlockParam) : block,
  );
}

function toUserBlock(block: UserBlock): ContentBlockParam[] {
  switch (block.type) {
    case 'text':
      return toText(block.text);
    case 'image':
      return [
        { type: 'image', source: { type: 'base64', media_type: imageType(block), data: block.base64 } },
      ];
    case 'tool_result':
      return [toToolResult(block)];
    default:
      return block satisfies never;
  }
}

type ImageType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';

function imageType(block: Extract<UserBlock, { type: 'image' }>): ImageType {
  // The API checks the bytes against the type and refuses what it does not know; saying so is its task.
  return block.mimeType as ImageType;
}

function toToolResult(block: Extract<UserBlock, { type: 'tool_result' }>): ToolResultBlockParam {
  const content = toText(block.content);
  return {
    type: 'tool_result',
    tool_use_id: block.toolCallId,
    ...(content.length > 0 ? { content } : {}),
    ...(block.isError ? { is_error: true } : {}),
  };
}

function toAssistantBlock(block: AssistantBlock): ContentBlockParam[] {
  switch (block.type) {
    case 'text':
      return toText(block.text);
    case 'thinking':
      return [toThinking(block)];
    case 'tool_use':
      return [{ type: 'tool_use', id: block.id, name: block.name, input: toInput(block.input) }];
    default:
      return block satisfies never;
  }
}

function toThinking(block: Extract<AssistantBlock, { type: 'thinking' }>): ContentBlockParam {
  return block.signature.startsWith(REDACTED)
    ? { type: 'redacted_thinking', data: block.signature.slice(REDACTED.length) }
    : { type: 'thinking', thinking: block.thinking, signature: block.signature };
}

/** The API takes objects only; a call that was cut off may hold anything. */
function toInput(input: unknown): Record<string, unknown> {
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input);
  return isObject ? (input as Record<string, unknown>) : { input };
}

/** Text blocks must hold more than white space. */
function toText(text: string): TextBlockParam[] {
  return isBlank(text) ? [] : [{ type: 'text', text }];
}

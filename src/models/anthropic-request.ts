/**
 * A model request in Anthropic's format. Pure. Decides the cache breakpoints (tools, stable system prompt and the
 * last two user turns: four, which is the maximum) and whether and how a model is told to think.
 */
import type {
  ContentBlockParam,
  DiagnosticsParam,
  MessageCreateParamsBase,
  MessageParam,
  TextBlockParam,
  ThinkingConfigParam,
  Tool,
  ToolResultBlockParam,
} from '@anthropic-ai/sdk/resources/messages/messages';
import { isBlank } from '#channel-kit/clean-text.ts';
import type {
  AssistantBlock,
  LlmMessage,
  ModelInfo,
  ModelRequest,
  ToolSpec,
  UserBlock,
} from '#contracts/model.ts';
import type { AskTerms } from './asker.ts';
import { lookUpPrices, undated } from './prices.ts';
import { hasDocuments, type RequestFeatures, type UnsupportedNames } from './unsupported.ts';

export type AnthropicRequest = RequestFeatures & {
  readonly wire: MessageCreateParamsBase;
  readonly headers: Record<string, string>;
  readonly maxTokens: number;
};

/** `diagnostics`: only for a server that is known to compare requests. */
type AnthropicTerms = AskTerms<ClaudeModel> & { readonly diagnostics?: DiagnosticsParam | undefined };

/** Marks a signature that contains a redacted thinking block's data; see `EventReader`. */
export const REDACTED = 'redacted_thinking:';

const LEAST_BUDGET = 1024;
/** Share of the longest answer that a model with a token budget may use for thinking. */
const BUDGET_SHARE = { low: 0.25, medium: 0.5, high: 0.75 } as const;
const CACHED = { type: 'ephemeral' } as const;
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/** Parameters that compatible servers may not know, and that can be left out. */
const optional = ['thinking', 'output_config', 'diagnostics', 'cache_control'] as const;

export function toAnthropicRequest(
  request: ModelRequest,
  { model, unsupported, diagnostics }: AnthropicTerms,
): AnthropicRequest {
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
  if (diagnostics !== undefined) params.diagnostics = diagnostics;
  const isBound = model.bindsThinking && thinking?.type === 'adaptive';
  const wire = without(params, unsupported);
  return {
    wire,
    headers: isBound ? { 'anthropic-beta': BINDING_BETA } : {},
    maxTokens: params.max_tokens,
    hasImages: request.messages.some(({ content }) => content.some(({ type }) => type === 'image')),
    hasDocuments: hasDocuments(request),
    hasTools: request.tools.length > 0,
    hasSystem: system.length > 0,
    params: optional.filter((name) => name in wire || name === 'cache_control'),
  };
}

function without(params: MessageCreateParamsBase, unsupported: UnsupportedNames): MessageCreateParamsBase {
  const left = { ...params };
  if (unsupported.has('thinking')) delete left.thinking;
  if (unsupported.has('output_config')) delete left.output_config;
  if (unsupported.has('diagnostics')) delete left.diagnostics;
  if (!unsupported.has('cache_control')) return left;
  const unmark = <Block>(block: Block): Block => ({ ...block, cache_control: undefined });
  const messages = left.messages.map((message): MessageParam => {
    if (typeof message.content === 'string') return message;
    // The type pairs each role with its own blocks.
    return { ...message, content: message.content.map((one) => unmark(one)) } as MessageParam;
  });
  return {
    ...left,
    messages,
    ...(Array.isArray(left.system) && { system: left.system.map((one) => unmark(one)) }),
    ...(left.tools && { tools: left.tools.map((one) => unmark(one)) }),
  };
}

function thinkingOf(request: ModelRequest, model: ClaudeModel): ThinkingConfigParam | undefined {
  const { reasoning } = request;
  if (reasoning === 'off') return thinkingOff(model);
  if (model.thinking === 'adaptive') return adaptive(model, 'summarized');
  if (!canResumeThinking(request.messages, model)) return undefined;
  const maxTokens = maxTokensOf(request, model);
  // The answer needs room too, and the API accepts no budget below its minimum.
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
  // Compaction and shortened tool results change what precedes a block.
  // The setting is a beta that the SDK's stable type doesn't list; it requires BINDING_BETA.
  const bound = { type: 'adaptive', display, block_binding: { prefix_mismatch_behavior: 'drop_block' } };
  return bound as ThinkingConfigParam;
}

function effortOf({ reasoning }: ModelRequest, model: ClaudeModel): 'low' | 'medium' | 'high' | undefined {
  if (model.thinking !== 'adaptive') return undefined;
  if (reasoning === 'off') return model.thinkingOff === 'never' ? 'low' : undefined;
  return reasoning;
}

/** Says whether old thinking is sent. A model that binds its thinking may refuse it when thinking is turned off. */
function keepsThinking(thinking: ThinkingConfigParam | undefined, model: ClaudeModel): boolean {
  return !model.bindsThinking || thinking?.type === 'adaptive';
}

/**
 * Says whether a turn may use a thinking budget: if its tools were just answered, it must begin with its thinking.
 * A turn that began without (another model, thinking off) is finished without.
 */
function canResumeThinking(messages: readonly LlmMessage[], model: ClaudeModel): boolean {
  const first = messages.findLast((message) => message.role === 'assistant')?.content[0];
  const isOpen = messages.at(-1)?.content.some((block) => block.type === 'tool_result') ?? false;
  return !isOpen || (first?.type === 'thinking' && isBySameModel(first, model));
}

/** Compares without dates, since answers name their model with its date. */
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

/** Cached, since every request has the same tools. */
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

/** Fills an empty message, which the API would refuse; omitting it would break the alternation of roles. */
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
    case 'document':
      return [
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: block.base64 },
        },
      ];
    case 'tool_result':
      return [toToolResult(block)];
    default:
      return block satisfies never;
  }
}

type ImageType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';

function imageType(block: Extract<UserBlock, { type: 'image' }>): ImageType {
  // The API checks the bytes against the type and refuses unknown types, so no check is needed here.
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

/** Returns an object, as the API requires; the arguments of a call that was cut off may be anything. */
function toInput(input: unknown): Record<string, unknown> {
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input);
  return isObject ? (input as Record<string, unknown>) : { input };
}

/** Returns no block for blank text, since text blocks must contain more than white space. */
function toText(text: string): TextBlockParam[] {
  return isBlank(text) ? [] : [{ type: 'text', text }];
}

/** A model's facts that the request builder needs in addition to the public ones. */
export type ClaudeModel = ModelInfo & {
  /** `budget`: a token budget for thinking; `adaptive`: an effort level, since budgets are refused. */
  readonly thinking: 'budget' | 'adaptive';
  /** How thinking is turned off; `never`: it can't be, so the effort is set low. */
  readonly thinkingOff: 'omit' | 'disabled' | 'between_tools' | 'never';
  /**
   * The model refuses thinking blocks if the system prompt, tools or messages before them have since changed,
   * unless it is told to drop them (preserved thinking).
   */
  readonly bindsThinking: boolean;
};

type Traits = Pick<ClaudeModel, 'thinking' | 'thinkingOff' | 'bindsThinking'> & {
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
};

const answerTokens = 16_000;

const large = { contextWindow: 1_000_000, maxOutputTokens: 128_000, thinking: 'adaptive' } as const;
const small = { contextWindow: 200_000, maxOutputTokens: 64_000, thinking: 'budget' } as const;

/** Source: platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting, read 2026-11. */
const traits: readonly (readonly [RegExp, Traits])[] = [
  [/^claude-(fable|mythos)-5-[12]$/, { ...large, thinkingOff: 'never', bindsThinking: true }],
  [/^claude-opus-5-5$/, { ...large, thinkingOff: 'never', bindsThinking: true }],
  [/^claude-sonnet-5-5$/, { ...large, thinkingOff: 'between_tools', bindsThinking: true }],
  [/^claude-haiku-5-5$/, { ...large, thinkingOff: 'disabled', bindsThinking: true }],
  [/^claude-(fable|mythos)-5$/, { ...large, thinkingOff: 'never', bindsThinking: false }],
  [/^claude-(opus|sonnet)-5$/, { ...large, thinkingOff: 'disabled', bindsThinking: false }],
  [/^claude-opus-4-[678]$/, { ...large, thinkingOff: 'omit', bindsThinking: false }],
  [/^claude-sonnet-4-6$/, { ...large, maxOutputTokens: 64_000, thinkingOff: 'omit', bindsThinking: false }],
  [/^claude-(opus|sonnet|haiku)-4-5$/, { ...small, thinkingOff: 'omit', bindsThinking: false }],
];

/** Cautious assumptions about a model that isn't in the table, perhaps from a compatible server. */
const unknown: Traits = { ...small, maxOutputTokens: 32_000, thinkingOff: 'omit', bindsThinking: false };

export function claudeModel(id: string): ClaudeModel {
  const found = traits.find(([pattern]) => pattern.test(undated(id)))?.[1] ?? unknown;
  const takesDocuments = found !== unknown;
  return { ...found, id, answerTokens, canThink: true, takesDocuments, prices: lookUpPrices(id) };
}

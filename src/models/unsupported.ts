/** Recognizes what a server doesn't accept in a request, so that it can be asked again without. Pure. */
import type {
  AssistantBlock,
  LlmMessage,
  LlmProvider,
  ModelRequest,
  RefusalClass,
  UserBlock,
} from '#contracts/model.ts';
import type { JudgedRefusal } from './model-fault.ts';

/** Names of what a server has refused and isn't sent again: parameters, and the following. */
export type UnsupportedNames = ReadonlySet<string>;

/** Images: the model can't see them and is told that there was one. */
export const IMAGES = 'images';
/** Documents: the model is given their text instead. */
export const DOCUMENTS = 'documents';
/** Tools: the model doesn't support them and is asked without. */
export const TOOLS = 'tools';
/** Instructions as a message of their own: they are put before the first message. */
export const SYSTEM = 'system role';
/** Tool calls of another model, which lack this model's signature. */
export const UNSIGNED_CALLS = 'unsigned calls';
/** Messages without reasoning: those of another model, or written without. */
export const UNREASONED = 'messages without reasoning';

/** Contents of a request that a server may refuse. */
export type RequestFeatures = {
  readonly hasImages: boolean;
  readonly hasDocuments: boolean;
  readonly hasTools: boolean;
  readonly hasSystem: boolean;
  /** Names of the parameters that can be left out. */
  readonly params: readonly string[];
};

/** Matches refusals of servers whose model accepts only text; some want a plain string instead of a list of parts. */
const aboutImages = new RegExp(
  [
    '\\bimage inputs?\\b', // Ollama, llama.cpp, OpenRouter
    'content part type\\b.{0,40}image_url', // llama.cpp
    'vision model not found', // Ollama
    '\\b(?:support|accept|process|handle)s? (?:images?|vision|multimodal|image_url)\\b', // LM Studio, Mistral
    'images? (?:is|are) not (?:supported|allowed)|not support (?:image|vision|multimodal)', // Bedrock, Together
    'image_url is (?:only|not) supported', // OpenAI
    "invalid content type\\b.{0,20}image|image_url'? is not", // SambaNova, Perplexity
    'not (?:a )?(?:multimodal|vision)|at most 0 image|no multimodal', // vLLM
    'mmproj|missing data required for image', // llama.cpp, Ollama
    'unknown variant .?image_url|sequence, expected a string|chatcompletionrequestcontent', // DeepSeek
    'content\\b.{0,20}must be a string|content\\b.{0,40}(?:valid|expected a?) ?string', // Groq, Cerebras
    'expected string, got (?:list|array)', // MiMo
    '不支持(?:图片|图像|多模态|视觉)', // Zhipu
  ].join('|'),
);

/** Matches refusals of servers that take no files, or not this one. */
const aboutDocuments = new RegExp(
  [
    '\\b(?:document|file|pdf)s?\\b.{0,40}(?:not (?:be )?(?:supported|allowed|accepted|enabled)|unsupported)',
    "(?:not|n't) support (?:document|file|pdf)|unsupported (?:document|file|pdf|content)",
    'content part type\\b.{0,40}file|unknown (?:part|content) type|invalid (?:part|content) type',
    "unknown variant .?(?:file|document)|input tag '(?:document|file)'|invalid value: '?(?:file|document)",
    'pdf\\b.{0,40}(?:password|invalid|not valid|corrupt|damaged|pages)', // Anthropic
  ].join('|'),
);

const toolWords =
  '(?:tools?|tool[ _-](?:use|calls?|calling|choice)|function[ _-]call(?:s|ing)?|functions?)[\'`"]?';
/** Matches refusals of servers whose model doesn't support tools, or that aren't configured for its tool calls. */
const aboutTools = new RegExp(
  [
    `\\bsupports? ${toolWords}(?![_\\w])`, // Ollama, OpenRouter, Bedrock, DeepSeek
    `${toolWords} (?:is|are) not (?:supported|enabled|available|allowed)`, // OpenAI, Groq, Gemini, Mistral
    `(?:does not|doesn't|not) support (?:the )?${toolWords}(?![_\\w])`,
    `(?:unsupported|unrecognized|unknown|extra) (?:parameter|argument|field|inputs?)s?\\b.{0,20}['"\`]?tools\\b`,
    'tool choice requires --enable-auto-tool-choice', // vLLM
    'tools param requires|unsupported param: tools|use tools with stream', // llama.cpp
    '不支持(?:工具|函数|function)', // Zhipu
  ].join('|'),
);

/** Matches refusals of models that were trained without instructions of their own. */
const aboutSystem =
  /system (?:role|message|prompt|instruction)s?\b.{0,30}(?:not supported|not enabled|not allowed|unsupported)|not support (?:the )?(?:'|")?system|developer instruction is not enabled|does not support 'system'|(?:unknown|invalid|unsupported) role:? .{0,3}system|不支持.{0,6}system/;

/** Classes that say more than that something isn't accepted. */
const decided: ReadonlySet<RefusalClass> = new Set([
  'policy',
  'key',
  'credit',
  'allowance',
  'rate',
  'overflow',
  'slip',
]);

/** Names what the server doesn't accept; undefined if the refusal is about something else. */
export function unsupportedIn(
  { refusal, is }: Pick<JudgedRefusal, 'refusal' | 'is'>,
  { hasImages, hasDocuments, hasTools, hasSystem, params }: RequestFeatures,
): string | undefined {
  const { status, words, param } = refusal;
  if (decided.has(is) || status === undefined) return undefined;
  if (hasDocuments && aboutDocuments.test(words)) return DOCUMENTS;
  if (hasImages && aboutImages.test(words)) return IMAGES;
  if (hasTools && aboutTools.test(words)) return TOOLS;
  if (hasSystem && aboutSystem.test(words)) return SYSTEM;
  if (/missing a .?thought_signature/.test(words)) return UNSIGNED_CALLS;
  if (/reasoning_content.{0,40}(?:must be passed back|is missing)|missing .?reasoning_content/.test(words))
    return UNREASONED;
  if (status !== 400 && status !== 422 && status !== 200) return undefined;
  const named = params.find((name) => param === name || param?.startsWith(`${name}.`));
  if (named !== undefined) return named;
  const isRefused =
    /unsupported|not (?:be )?support|not permitted|not allowed|unrecognized|unknown|unexpected|extra|invalid (?:param|field|arg|value)|additional propert|does not accept|cannot be disabled|is mandatory|不支持/;
  return isRefused.test(words) ? params.find((name) => mentions(words, name)) : undefined;
}

/** Words for parameters that servers describe instead of naming. */
const synonyms: Readonly<Record<string, RegExp>> = {
  reasoning_effort: /reasoning|thinking/,
  thinking: /\bthinking\b/,
  output_config: /output_config|\beffort\b/,
};

function mentions(words: string, name: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(words) || synonyms[name]?.test(words) === true;
}

const unseen: UserBlock = { type: 'text', text: '[an image, which this model cannot see]' };

/** Returns the request with a text in place of each image. */
export function withoutImages(request: ModelRequest): ModelRequest {
  const blind = (message: LlmMessage): LlmMessage =>
    message.role === 'user' && message.content.some(({ type }) => type === 'image')
      ? { ...message, content: message.content.map((block) => (block.type === 'image' ? unseen : block)) }
      : message;
  return { ...request, messages: request.messages.map(blind) };
}

/** Returns the request with its text in place of each document. */
export function withoutDocuments(request: ModelRequest): ModelRequest {
  const inWords = (block: UserBlock): UserBlock =>
    block.type === 'document' ? { type: 'text', text: block.text } : block;
  const messages = request.messages.map((message) =>
    message.role === 'user' ? { ...message, content: message.content.map(inWords) } : message,
  );
  return { ...request, messages };
}

/** Says whether the request shows a document itself. */
export function hasDocuments({ messages }: ModelRequest): boolean {
  return messages.some(({ content }) => content.some(({ type }) => type === 'document'));
}

/** Returns the request with its instructions at the beginning of the first message. Messages keep their positions. */
export function withoutSystem(request: ModelRequest): ModelRequest {
  const text = request.system.map((block) => block.text).join('\n\n');
  const first = request.messages.findIndex(({ role }) => role === 'user');
  if (text.trim() === '' || first === -1) return request;
  const messages = request.messages.map((message, index): LlmMessage => {
    if (index !== first || message.role !== 'user') return message;
    // Results must directly follow their calls.
    const results = message.content.filter(({ type }) => type === 'tool_result');
    const rest = message.content.filter(({ type }) => type !== 'tool_result');
    return { ...message, content: [...results, { type: 'text', text }, ...rest] };
  });
  return { ...request, system: [], messages };
}

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

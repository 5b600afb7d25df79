/**
 * The marks that models write into their text if the server doesn't translate them: reasoning, tool calls, special
 * tokens. One table for every provider; docs/models.md lists the forms.
 *
 * Position decides whether a mark is meant: in code it is text. A tag such as `<think>` counts at the beginning of a
 * line, since a sentence may mention one; a special token, which no person types, counts anywhere.
 */

/** Where a mark counts: `line`: only blanks before it on its line. */
type Position = 'anywhere' | 'line';

/** A way of marking reasoning. Patterns are sticky. */
type ReasoningGrammar = { readonly open: RegExp; readonly close: RegExp; readonly where: Position };

const reasoningTags =
  'think|thinking|thought|thoughts|reasoning|reflection|scratchpad|antthinking|internal_monologue';

/** The tag also with a namespace, as Seed-OSS and MiniMax write it. Sources: the reasoning parsers of vLLM and SGLang. */
const tagOpen = new RegExp(`<(?:\\w{1,12}:)?(${reasoningTags})>`, 'iy');
const tagClose = new RegExp(`</(?:\\w{1,12}:)?(${reasoningTags})\\s?>`, 'iy');

export const reasoningGrammars: readonly ReasoningGrammar[] = [
  { open: tagOpen, close: tagClose, where: 'line' },
  // Magistral.
  { open: /\[THINK\]/y, close: /\[\/THINK\]/y, where: 'anywhere' },
  // Kimi.
  { open: /◁think▷/y, close: /◁[/]think▷/y, where: 'anywhere' },
  // OpenThinker, and others trained on its answers.
  { open: /<\|begin_of_thought\|>/y, close: /<\|end_of_thought\|>/y, where: 'anywhere' },
  // Command A.
  { open: /<\|START_THINKING\|>/y, close: /<\|END_THINKING\|>/y, where: 'anywhere' },
  // Gemma.
  { open: /<\|channel>thought\s?/y, close: /<channel\|>/y, where: 'anywhere' },
  { open: /<unused94>(?:thought)?\s?/y, close: /<unused95>/y, where: 'anywhere' },
];

/** A way of writing tool calls. `close` is absent where a call ends with the text. */
type CallGrammar = {
  readonly open: RegExp;
  /** Pattern of the end; `$1` is the name that the opening mark captured. */
  readonly close?: string;
  readonly where: Position;
  /** Must follow the opening mark if that isn't at the beginning of a line, where a sentence may mention it. */
  readonly follows?: RegExp;
};

const xmlNames = 'tool_calls?|function_calls?|tool_use|toolcall|invoke';
/** Matches the beginning of a call: JSON, another tag, or the tool's name and its first argument. */
const callBegins = /\s*(?:[{[<]|[\w.-]{1,64}\s*<arg_key>)/y;

export const callGrammars: readonly CallGrammar[] = [
  // DeepSeek V3.2 and V4, with the bars that servers make of it.
  {
    open: /<[|｜‖]{1,2}DSML[|｜‖]{1,2}\s?([\w-]+)/y,
    close: '</[|｜‖]{1,2}DSML[|｜‖]{1,2}\\s?$1\\s*>',
    where: 'anywhere',
  },
  // DeepSeek V3, R1 and V3.1.
  {
    open: /<[|｜]tool[▁_ ]calls[▁_ ]begin[|｜]>/y,
    close: '<[|｜]tool[▁_ ]calls[▁_ ]end[|｜]>',
    where: 'anywhere',
  },
  // Kimi K2.
  { open: /<\|tool_calls_section_begin\|>/y, close: '<\\|tool_calls_section_end\\|>', where: 'anywhere' },
  {
    open: /<[|｜]tool[▁_ ]call[▁_ ]begin[|｜]>/y,
    close: '<[|｜]tool[▁_ ]call[▁_ ]end[|｜]>',
    where: 'anywhere',
  },
  // Llama 3 and 4.
  { open: /<\|python_(?:tag|start)\|>/y, close: '<\\|(?:python_end|eom_id|eot_id)\\|>', where: 'anywhere' },
  // Mistral.
  { open: /\[TOOL_CALLS\]/y, where: 'anywhere' },
  // Granite, Phi-4 mini.
  { open: /<\|tool_call\|>/y, close: '<\\|/tool_call\\|>', where: 'anywhere' },
  // Gemma 4.
  { open: /<\|tool_call>/y, close: '<tool_call\\|>', where: 'anywhere' },
  // Command R and A, InternLM, LFM2.
  { open: /<\|START_ACTION\|>/y, close: '<\\|END_ACTION\\|>', where: 'anywhere' },
  { open: /<\|action_start\|>/y, close: '<\\|action_end\\|>', where: 'anywhere' },
  { open: /<\|tool_call_start\|>/y, close: '<\\|tool_call_end\\|>', where: 'anywhere' },
  // Hermes, Qwen, GLM, MiniMax, Nemotron, Seed-OSS, and Claude's own form.
  {
    open: new RegExp(`<((?:\\w{1,12}:)?(?:${xmlNames}))(?:\\s[^<>]{0,200})?>`, 'iy'),
    close: '</$1\\s?>',
    where: 'line',
    follows: callBegins,
  },
  // Llama 3.1 and Qwen3-coder without `<tool_call>`.
  { open: /<function=(?=[\w.-])/y, close: '</function\\s?>', where: 'anywhere' },
];

/** Results that a model makes up for its own calls. */
export const resultBlock =
  /<((?:\w{1,12}:)?(?:tool_results?|tool_response|tool_output|function_results?))(?:\s[^<>]{0,200})?>/iy;

/** Ends of turns and other tokens that aren't text. */
export const specialToken =
  /<[|｜](?:im_end|eot_id|eom_id|endoftext|end_of_text|end▁of▁sentence|begin▁of▁sentence|begin_of_text|end_of_turn|eos|end|return|call|observation|begin_of_solution|end_of_solution|START_RESPONSE|END_RESPONSE|START_TEXT|END_TEXT|END_OF_TURN_TOKEN|Assistant|assistant)[|｜]>\n?|<\|im_start\|>assistant\n?|<\|start_header_id\|>assistant<\|end_header_id\|>\n{0,2}|<end_of_turn>\n?|<start_of_turn>model\n?|\[\/?INST\]/y;

/** The model plays the person: nothing after it is part of the answer. */
export const nextSpeaker =
  /<\|im_start\|>(?:user|system|tool)\b|<[|｜](?:user|User|system)[|｜]>|<start_of_turn>user\b|<\|start_header_id\|>(?:user|system)\b/y;

/** `</s>` also ends struck-out text in HTML, so it only counts as the last thing that was written. */
export const lastTokens = /^(?:(?:<\/?s>|\[EOS\]|<eos>)\s*)+$/;

/** Harmony: `<|start|>assistant<|channel|>analysis<|message|>…<|end|>`. */
export const harmonyHeader = /<\|(?:start|channel)\|>/y;
export const harmonyBody = /<\|message\|>/;
export const harmonyEnd = /<\|(?:end|call|return|start|channel)\|>/;

/** Matches a text that may still grow into one of the marks above; the longest has 60 characters before it is recognized. */
export const unfinishedMark =
  /^(?:<\/?[|｜‖]{0,2}[\w:=▁-]{0,40}[|｜]?|<\/?[|｜‖]{1,2}[\w ▁-]{0,40}[|｜‖]{0,2}\s?[\w-]{0,40}|<\/?(?:\w{1,12}:)?\w{1,20}\s[^<>]{0,200}|<\|im_start\|>\w{0,9}|<start_of_turn>\w{0,5}|<(?:\|channel|unused94)>\w{0,7}|<\|start_header_id\|>[\w<|]{0,26}|\[\/?[A-Z_]{0,10}|◁\/?\w{0,5})$/;

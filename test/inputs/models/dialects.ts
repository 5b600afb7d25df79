/**
 * How servers stream the same answers. Each dialect is the shape of one server; `source` names where the shape was seen.
 * The values are ours.
 */
import type { Api } from './read-with.ts';

/** One answer, before a server puts it on the wire. */
export type Turn = {
  readonly what: string;
  readonly thinking?: string;
  readonly texts?: readonly string[];
  readonly calls?: readonly { readonly id: string; readonly input: object }[];
  readonly isCut?: true;
};

export type Dialect = {
  readonly server: string;
  readonly api: Api;
  readonly source: string;
  /** Tokens that it is to be understood to count; undefined: none. */
  readonly usage: readonly [number, number, number, number] | undefined;
  /** The server doesn't show its reasoning. */
  readonly hidesThinking?: true;
  stream(turn: Turn): string;
};

export const turns: readonly Turn[] = [
  { what: 'a text', texts: ['Hel', 'lo, ', 'you.'] },
  { what: 'reasoning and a text', thinking: 'A greeting. I greet.', texts: ['Hi', '.'] },
  { what: 'a call', texts: ['I look.'], calls: [{ id: 'call_a', input: { path: '.' } }] },
  {
    what: 'two calls without a text',
    thinking: 'Both.',
    calls: [
      { id: 'call_a', input: { path: 'a' } },
      { id: 'call_b', input: { path: 'b' } },
    ],
  },
  { what: 'an answer that is cut off', texts: ['One, two, thr'], isCut: true },
];

type OpenAiParts = {
  readonly head?: object;
  /** Deltas of a call. */
  readonly call: (call: { id: string; json: string; index: number }) => readonly object[];
  readonly think?: (thinking: string) => readonly object[];
  readonly first?: readonly (object | string)[];
  /** Added to the chunk with the stop reason. */
  readonly last?: object;
  readonly lastChoice?: object;
  /** Added to every chunk. */
  readonly each?: object;
  /** Chunk after the last. */
  readonly after?: readonly object[];
  readonly noDone?: true;
  readonly noFinish?: true;
  readonly finish?: { readonly stop?: string; readonly calls?: string; readonly cut?: string };
  readonly lineEnd?: string;
  readonly delta?: (content: string) => object;
};

/** Returns the stream of a Chat Completions server. */
function chat(parts: OpenAiParts): (turn: Turn) => string {
  const {
    head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'some-model' },
    lineEnd = '\n',
  } = parts;
  return ({ thinking, texts = [], calls = [], isCut }) => {
    const chunk = (choice: object, extra: object = {}) => ({
      ...head,
      choices: [{ index: 0, finish_reason: null, ...choice }],
      ...parts.each,
      ...extra,
    });
    const { stop = 'stop', calls: called = 'tool_calls', cut = 'length' } = parts.finish ?? {};
    const finish = isCut ? cut : calls.length > 0 ? called : stop;
    const deltas = [
      ...(thinking === undefined ? [] : (parts.think?.(thinking) ?? [])),
      ...texts.map((content) => parts.delta?.(content) ?? { content }),
      ...calls.flatMap(({ id, input }, index) => parts.call({ id, json: JSON.stringify(input), index })),
    ];
    const all = [
      ...(parts.first ?? []),
      ...deltas.map((delta) => chunk({ delta })),
      ...(parts.noFinish
        ? []
        : [chunk({ delta: {}, finish_reason: finish, ...parts.lastChoice }, parts.last)]),
      ...(parts.after ?? []).map((extra) => ({ ...head, choices: [], ...extra })),
      ...(parts.noDone ? [] : ['[DONE]']),
    ];
    return all
      .map((each) =>
        typeof each === 'string'
          ? each === '[DONE]'
            ? 'data: [DONE]\n\n'
            : each
          : `data: ${JSON.stringify(each)}\n\n`,
      )
      .join('')
      .replaceAll('\n', lineEnd);
  };
}

type Call = { readonly id: string; readonly json: string; readonly index: number };

const named = ({ id, index }: Call, args = '') => ({
  tool_calls: [{ index, id, type: 'function', function: { name: 'list', arguments: args } }],
});
/** Name first, then the arguments in pieces. */
const inPieces = (call: Call) => [
  named(call),
  ...[call.json.slice(0, 4), call.json.slice(4)].map((args) => ({
    tool_calls: [{ index: call.index, function: { arguments: args } }],
  })),
];
const inOne = (call: Call) => [named(call, call.json)];
const field = (name: string) => (thinking: string) =>
  [thinking.slice(0, 5), thinking.slice(5)].map((piece) => ({ [name]: piece }));
const counts = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
const cached = { ...counts, prompt_tokens_details: { cached_tokens: 40 } };

export const chatDialects: readonly Dialect[] = [
  {
    server: 'OpenAI',
    api: 'openai',
    source: 'the streaming reference of Chat Completions',
    usage: [60, 20, 40, 0],
    hidesThinking: true,
    stream: chat({
      call: inPieces,
      after: [{ usage: cached }],
      each: { service_tier: 'default', system_fingerprint: null },
    }),
  },
  {
    server: 'Azure',
    api: 'openai',
    source: 'azure-sdk issues on prompt_filter_results',
    usage: [60, 20, 40, 0],
    hidesThinking: true,
    stream: chat({
      call: inPieces,
      after: [{ usage: cached }],
      first: [
        {
          id: '',
          object: '',
          model: '',
          choices: [],
          prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }],
        },
      ],
      lastChoice: { content_filter_results: { hate: { filtered: false } } },
    }),
  },
  {
    server: 'OpenRouter',
    api: 'openai',
    source: 'openrouter.ai/docs on streaming and usage accounting',
    usage: [60, 20, 40, 0],
    stream: chat({
      call: inPieces,
      first: [': OPENROUTER PROCESSING\n\n'],
      think: (thinking) => [
        {
          role: 'assistant',
          content: '',
          reasoning: thinking,
          reasoning_details: [{ type: 'reasoning.text', text: thinking, index: 0 }],
        },
      ],
      delta: (content) => ({ role: 'assistant', content }),
      after: [
        {
          choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
          usage: cached,
        },
      ],
    }),
  },
  {
    server: 'Gemini',
    api: 'openai',
    source: 'googleapis/js-genai and litellm issues on the compatible endpoint',
    usage: [100, 25, 0, 0],
    hidesThinking: true,
    stream: chat({
      call: ({ id, json, index }) => [
        {
          role: 'assistant',
          tool_calls: [
            {
              index,
              id,
              type: 'function',
              extra_content: { google: { thought_signature: 'c2ln' } },
              function: { name: 'list', arguments: json },
            },
          ],
        },
      ],
      last: { usage: { ...counts, total_tokens: 125 } },
      finish: { calls: 'stop' },
    }),
  },
  {
    server: 'Ollama',
    api: 'openai',
    source: 'ollama/ollama openai/openai.go',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: (call) => inOne({ ...call, index: 0 }),
      think: (thinking) => [{ role: 'assistant', content: '', reasoning: thinking }],
      after: [{ usage: counts }],
    }),
  },
  {
    server: 'llama.cpp',
    api: 'openai',
    source: 'ggml-org/llama.cpp tools/server README',
    usage: [60, 20, 40, 0],
    stream: chat({
      call: inPieces,
      think: field('reasoning_content'),
      first: [{ choices: [{ index: 0, delta: { role: 'assistant', content: null }, finish_reason: null }] }],
      last: { timings: { prompt_n: 60, cache_n: 40, predicted_n: 20, predicted_ms: 5 } },
    }),
  },
  {
    server: 'vLLM',
    api: 'openai',
    source: 'vllm-project/vllm serving_chat.py, continuous_usage_stats',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inPieces,
      think: field('reasoning'),
      each: {
        usage: { prompt_tokens: 100, completion_tokens: 1, total_tokens: 101 },
        prompt_token_ids: null,
      },
      lastChoice: { stop_reason: null },
      after: [{ usage: counts }],
    }),
  },
  {
    server: 'vLLM without a parser',
    api: 'openai',
    source: 'vllm issues on a missing --reasoning-parser',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inPieces,
      think: (thinking) => [{ content: `<think>\n${thinking}\n</th` }, { content: 'ink>\n\n' }],
      after: [{ usage: counts }],
    }),
  },
  {
    server: 'SGLang with a pre-filled mark',
    api: 'openai',
    source: 'sgl-project docs on separate_reasoning',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inPieces,
      think: (thinking) => [
        { role: 'assistant', content: '' },
        { content: thinking },
        { content: '\n</think>\n\n' },
      ],
      after: [{ usage: counts }],
    }),
  },
  {
    server: 'LM Studio',
    api: 'openai',
    source: 'lmstudio-ai/lmstudio-bug-tracker',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inPieces,
      think: field('reasoning_content'),
      last: { usage: counts, stats: {} },
      lineEnd: '\r\n',
    }),
  },
  {
    server: 'DeepSeek',
    api: 'openai',
    source: 'api-docs.deepseek.com on reasoning_content and caching',
    usage: [60, 20, 40, 0],
    stream: chat({
      call: inPieces,
      think: (thinking) => [{ content: null, reasoning_content: thinking }],
      first: [': keep-alive\n\n'],
      last: {
        usage: {
          ...counts,
          prompt_cache_hit_tokens: 40,
          prompt_cache_miss_tokens: 60,
          completion_tokens_details: { reasoning_tokens: 5 },
        },
      },
    }),
  },
  {
    server: 'Mistral',
    api: 'openai',
    source: 'docs.mistral.ai on reasoning: content parts',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inOne,
      think: (thinking) => [
        { content: [{ type: 'thinking', thinking: [{ type: 'text', text: thinking }] }] },
      ],
      last: { usage: counts },
      finish: { cut: 'model_length' },
    }),
  },
  {
    server: 'Groq',
    api: 'openai',
    source: 'console.groq.com: x_groq, channel',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inOne,
      think: (thinking) => [{ reasoning: thinking, channel: 'analysis' }],
      last: { x_groq: { id: 'r', usage: { ...counts, queue_time: 0.1 } } },
    }),
  },
  {
    server: 'Together',
    api: 'openai',
    source: 'togethercomputer/together-python issues: eos, nulls',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inPieces,
      think: field('reasoning'),
      delta: (content) => ({ content, token_id: 1, role: 'assistant', tool_calls: null }),
      finish: { stop: 'eos' },
      last: { usage: counts },
      each: { prompt: [] },
    }),
  },
  {
    server: 'Fireworks',
    api: 'openai',
    source: 'fireworks docs: usage with the last chunk',
    usage: [100, 20, 0, 0],
    stream: chat({ call: inPieces, think: field('reasoning_content'), last: { usage: counts } }),
  },
  {
    server: 'xAI',
    api: 'openai',
    source: 'docs.x.ai: reasoning outside completion_tokens',
    usage: [60, 25, 40, 0],
    stream: chat({
      call: inOne,
      think: field('reasoning_content'),
      each: { usage: null },
      after: [
        {
          usage: {
            ...cached,
            total_tokens: 125,
            completion_tokens_details: { reasoning_tokens: 5 },
            num_sources_used: 0,
          },
        },
      ],
    }),
  },
  {
    server: 'Perplexity',
    api: 'openai',
    source: 'docs.perplexity.ai: message beside delta',
    usage: [100, 20, 0, 0],
    hidesThinking: true,
    stream: chat({
      call: inOne,
      each: { usage: counts },
      lastChoice: { message: { role: 'assistant', content: 'all of it again' } },
      noDone: true,
    }),
  },
  {
    server: 'Moonshot',
    api: 'openai',
    source: 'platform.moonshot.ai: usage in the choice',
    usage: [60, 20, 40, 0],
    stream: chat({
      call: (call) => inPieces({ ...call, id: `list:${call.index}` }),
      think: field('reasoning_content'),
      lastChoice: { usage: { ...counts, cached_tokens: 40 } },
    }),
  },
  {
    server: 'DashScope',
    api: 'openai',
    source: 'Aliyun Model Studio: empty ids and names in later pieces',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: ({ id, json, index }) => [
        named({ id, json, index }),
        ...[json.slice(0, 3), json.slice(3)].map((args) => ({
          content: null,
          tool_calls: [{ index, id: '', type: 'function', function: { name: '', arguments: args } }],
        })),
      ],
      think: (thinking) => [{ content: null, reasoning_content: thinking }],
      after: [{ usage: counts }],
    }),
  },
  {
    server: 'Z.ai',
    api: 'openai',
    source: 'docs.z.ai: whole calls, usage with the last chunk',
    usage: [60, 20, 40, 0],
    stream: chat({ call: inOne, think: field('reasoning_content'), last: { usage: cached } }),
  },
  {
    server: 'MiniMax',
    api: 'openai',
    source: 'MiniMax platform: reasoning in the text, the whole message at the end',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inOne,
      think: (thinking) => [{ content: `<think>${thinking}</think>` }],
      delta: (content) => ({ content, role: 'assistant', name: 'MiniMax AI', audio_content: '' }),
      last: {
        usage: { ...counts, total_characters: 0 },
        input_sensitive: false,
        base_resp: { status_code: 0 },
      },
    }),
  },
  {
    server: 'Cerebras',
    api: 'openai',
    source: 'inference-docs.cerebras.ai: time_info',
    usage: [100, 20, 0, 0],
    stream: chat({
      call: inOne,
      think: field('reasoning'),
      last: { usage: counts, time_info: { total_time: 0.1 } },
    }),
  },
  {
    server: 'LiteLLM',
    api: 'openai',
    source: 'BerriAI/litellm: thinking_blocks, Anthropic counts',
    usage: [50, 20, 40, 10],
    stream: chat({
      call: inPieces,
      think: (thinking) => [
        {
          reasoning_content: thinking,
          thinking_blocks: [{ type: 'thinking', thinking, signature: '' }],
          provider_specific_fields: {},
        },
      ],
      after: [{ usage: { ...counts, cache_read_input_tokens: 40, cache_creation_input_tokens: 10 } }],
    }),
  },
  {
    server: 'a proxy without stop reasons',
    api: 'openai',
    source: 'open-webui pipelines and small proxies',
    usage: undefined,
    stream: (turn) =>
      chat({ call: inPieces, think: field('reasoning'), ...(turn.isCut ? {} : { noFinish: true }) })(turn),
  },
];

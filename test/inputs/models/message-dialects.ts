/** How servers of the Messages API stream the same answers; see dialects.ts. */
import type { Dialect, Turn } from './dialects.ts';

type AnthropicParts = {
  readonly startUsage: object | null | undefined;
  readonly endUsage: object | null | undefined;
  /** Lines without the name of their event. */
  readonly isBare?: true;
  /** Arguments come with the start of the call. */
  readonly hasWholeInput?: true;
  readonly end?: string;
};

/** Returns the stream of a Messages server. */
function messages({
  startUsage,
  endUsage,
  isBare,
  hasWholeInput,
  end = '',
}: AnthropicParts): (turn: Turn) => string {
  return ({ thinking, texts = [], calls = [], isCut }) => {
    let index = -1;
    const block = (start: object, deltas: readonly object[]) => {
      index += 1;
      return [
        { type: 'content_block_start', index, content_block: start },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ];
    };
    const events: readonly { readonly type: string }[] = [
      {
        type: 'message_start',
        message: {
          id: 'm',
          type: 'message',
          role: 'assistant',
          model: 'some-model',
          content: [],
          usage: startUsage,
        },
      },
      { type: 'ping' },
      ...(thinking === undefined
        ? []
        : block({ type: 'thinking', thinking: '' }, [
            { type: 'thinking_delta', thinking },
            { type: 'signature_delta', signature: 's' },
          ])),
      ...(texts.length === 0
        ? []
        : block(
            { type: 'text', text: '' },
            texts.map((text) => ({ type: 'text_delta', text })),
          )),
      ...calls.flatMap(({ id, input }) =>
        block(
          { type: 'tool_use', id, name: 'list', input: hasWholeInput ? input : {} },
          hasWholeInput ? [] : [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }],
        ),
      ),
      {
        type: 'message_delta',
        delta: { stop_reason: isCut ? 'max_tokens' : calls.length > 0 ? 'tool_use' : 'end_turn' },
        usage: endUsage,
      },
      { type: 'message_stop' },
    ] as readonly { readonly type: string }[];
    return (
      events
        .map((event) => `${isBare ? '' : `event: ${event.type}\n`}data: ${JSON.stringify(event)}\n\n`)
        .join('') + end
    );
  };
}

export const messageDialects: readonly Dialect[] = [
  {
    server: 'Anthropic',
    api: 'anthropic',
    source: 'platform.claude.com on streaming',
    usage: [50, 20, 40, 10],
    stream: messages({
      startUsage: {
        input_tokens: 50,
        cache_read_input_tokens: 40,
        cache_creation_input_tokens: 10,
        output_tokens: 1,
      },
      endUsage: { output_tokens: 20 },
    }),
  },
  {
    server: 'Bedrock',
    api: 'anthropic',
    source: 'aws-samples gateways: amazon-bedrock-invocationMetrics',
    usage: [100, 20, 0, 0],
    stream: messages({
      startUsage: { input_tokens: 100, output_tokens: 1 },
      endUsage: { output_tokens: 20 },
      end: 'data: {"amazon-bedrock-invocationMetrics":{"inputTokenCount":100}}\n\n',
    }),
  },
  {
    server: 'Vertex',
    api: 'anthropic',
    source: 'vertex rawPredict proxies: vertex_event',
    usage: [100, 20, 0, 0],
    stream: messages({
      startUsage: {
        input_tokens: 100,
        output_tokens: 1,
        cache_read_input_tokens: null,
        cache_creation_input_tokens: null,
      },
      endUsage: { output_tokens: 20 },
    }),
  },
  {
    server: 'LiteLLM for Messages',
    api: 'anthropic',
    source: 'BerriAI/litellm: counts only at the end',
    usage: [100, 20, 0, 0],
    stream: messages({
      startUsage: { input_tokens: 0, output_tokens: 0 },
      endUsage: { input_tokens: 100, output_tokens: 20 },
    }),
  },
  {
    server: 'Kimi for Messages',
    api: 'anthropic',
    source: 'moonshot anthropic endpoint: the whole input in the start block',
    usage: [100, 20, 0, 0],
    stream: messages({
      startUsage: { input_tokens: 100, output_tokens: 1 },
      endUsage: { output_tokens: 20 },
      hasWholeInput: true,
    }),
  },
  {
    server: 'a proxy without event names',
    api: 'anthropic',
    source: 'small Messages proxies',
    usage: undefined,
    stream: messages({ startUsage: null, endUsage: undefined, isBare: true, end: 'data: [DONE]\n\n' }),
  },
];

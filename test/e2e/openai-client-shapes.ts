/**
 * Requests as programs send them to OpenAI-compatible addresses, written after public reports and code: extra members,
 * parts, roles and settings that no agent uses.
 */
const user = (content: unknown) => [{ role: 'user', content }];
const history = [
  { role: 'system', content: 'You are a helpful assistant.' },
  { role: 'user', content: 'Earlier question' },
  { role: 'assistant', content: 'Earlier answer' },
  { role: 'user', content: 'the question' },
];

type Shape = { readonly client: string; readonly body: object; readonly headers?: Record<string, string> };

/** Bodies of `POST /v1/chat/completions`, without the model. */
export const chatShapes: readonly Shape[] = [
  {
    // https://github.com/open-webui/open-webui/issues/14469
    client: 'Open WebUI, with a parameter that it failed to remove',
    body: { stream: false, messages: history, stream_response: true, params: {}, metadata: { chat_id: 'c' } },
    headers: { 'x-openwebui-chat-id': 'webui-1' },
  },
  {
    // https://github.com/danny-avila/LibreChat/issues/4756
    client: 'LibreChat, custom endpoint',
    body: {
      messages: history,
      user: '65f1c0ffee',
      temperature: 1,
      top_p: 1,
      presence_penalty: 0,
      stream: false,
    },
  },
  {
    // https://github.com/danny-avila/LibreChat/issues/4924
    client: 'LibreChat, title by completion',
    body: {
      messages: [{ role: 'system', content: 'the question' }, ...user('the question')],
      max_tokens: 16,
      stop: ['\n'],
    },
  },
  {
    // https://github.com/continuedev/continue, core/llm/llms/OpenAI.ts
    client: 'Continue',
    body: {
      messages: user([{ type: 'text', text: 'the question' }]),
      max_tokens: 2048,
      stop: [],
      tools: [],
      stream: false,
    },
  },
  {
    // https://github.com/cline/cline/issues/1786
    client: 'Cline',
    body: { messages: history, temperature: 0, reasoning_effort: 'medium', parallel_tool_calls: false },
  },
  {
    // https://github.com/Mintplex-Labs/anything-llm/issues/2304
    client: 'AnythingLLM',
    body: { messages: [...history], temperature: 0.7, max_completion_tokens: 1024, store: null, n: 1 },
  },
  {
    // https://github.com/AK391/ai-gradio/issues/7
    client: 'a client that sends two user messages in a row',
    body: { messages: [...user('before'), ...user('the question')], temperature: 0.7, top_p: 0.9 },
  },
  {
    // https://github.com/langgenius/dify-plugins/pull/2388
    client: 'Dify, with a developer message',
    body: {
      messages: [{ role: 'developer', content: 'Be short.' }, ...user('the question')],
      user: 'dify:42',
      seed: 7,
    },
  },
  {
    // https://github.com/ddutchie/cairn/pull/78
    client: 'Cairn, asking for the usage',
    body: {
      messages: user('the question'),
      stream_options: null,
      logit_bias: {},
      response_format: { type: 'text' },
    },
  },
  {
    // https://github.com/vercel/ai, packages/openai-compatible
    client: 'AI SDK, openai-compatible',
    body: {
      messages: user([{ type: 'text', text: 'the question' }]),
      frequency_penalty: null,
      tool_choice: 'none',
    },
  },
  {
    // https://github.com/langfuse/langfuse/issues/9408
    client: 'Langfuse, checking a connection',
    body: {
      messages: user('the question'),
      max_tokens: 5,
      temperature: 0,
      service_tier: 'auto',
      metadata: {},
    },
  },
];

/** Bodies of `POST /v1/responses`, without the model. */
export const responseShapes: readonly Shape[] = [
  {
    client: 'a plain text',
    body: { input: 'the question', store: false, include: ['reasoning.encrypted_content'] },
  },
  {
    client: 'messages with typed parts',
    body: {
      input: [
        { role: 'developer', content: 'Be short.' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'the question' }] },
      ],
      instructions: 'You are a pirate.',
      reasoning: { effort: 'low' },
      text: { format: { type: 'text' }, verbosity: 'low' },
    },
  },
  {
    client: 'an earlier answer among the messages',
    body: {
      input: [
        { role: 'user', content: 'before' },
        {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'x', annotations: [] }],
        },
        { role: 'user', content: 'the question' },
      ],
      prompt_cache_key: 'k',
      safety_identifier: 's',
    },
  },
];

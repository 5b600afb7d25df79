/** Streams that no dialect covers, each a kind of its own. `source` names where the shape was seen; the values are ours. */
import { readFileSync } from 'node:fs';
import { type Api, type Outcome, sse } from './read-with.ts';

type SingleStream = {
  readonly what: string;
  readonly source: string;
  readonly api?: Api;
  readonly type?: string;
  readonly body: string;
  readonly expected: Outcome;
};

const said = (content: string, more: object = {}) => ({
  choices: [{ index: 0, delta: { content }, ...more }],
});
const stop = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };
const counted = { ...stop, usage };
const ofNine = [9, 4, 0, 0] as const;
const list = ['list', { path: '.' }] as const;
const end = { usage: ofNine, finish: 'end_turn' } as const;
const called = { calls: [list], usage: ofNine, finish: 'tool_use' } as const;
const call = (delta: object) => ({ choices: [{ index: 0, delta }] });

/** Returns one of the inputs that were reported, as it came. */
const input = (name: string) => readFileSync(new URL(`./reported/${name}`, import.meta.url), 'utf8');

export const singleStreams: readonly SingleStream[] = [
  {
    what: 'reasoning with only its closing mark',
    source: 'input 12a: QwQ and R1 templates at vLLM',
    body: input('12a-closing-think-only.sse'),
    expected: { thinking: 'Ann seems upset with Bob. I stay silent.', text: 'NO_REPLY', finish: 'end_turn' },
  },
  {
    what: 'Harmony channels',
    source: 'input 13: gpt-oss without a parser',
    body: input('13-harmony.sse'),
    expected: { thinking: 'User asks 2+2.', text: 'four', finish: 'end_turn' },
  },
  {
    what: 'a call in DSML',
    source: 'input 14a: DeepSeek V3.2',
    body: input('14a-dsml.sse'),
    expected: { text: 'Let me look.', calls: [list], finish: 'tool_use' },
  },
  {
    what: 'no stop reason',
    source: 'input 15',
    body: input('15-no-finish-reason.sse'),
    expected: { text: 'Complete answer without finish.', finish: 'end_turn' },
  },
  {
    what: 'one JSON body',
    source: 'input 16',
    type: 'application/json',
    body: input('16-json-to-stream.json'),
    expected: { text: 'Answer in one JSON body.', ...end },
  },
  {
    what: 'the input in the start block',
    source: 'input 19',
    api: 'anthropic',
    body: input('19-input-in-start-block.sse'),
    expected: { calls: [['read', { path: 'notes/a.md' }]], usage: [1, 5, 0, 0], finish: 'tool_use' },
  },
  {
    what: 'thinking parts',
    source: 'input 36: Magistral',
    body: input('36-mistral-thinking-parts.sse'),
    expected: { thinking: '2 and 2 are four.', text: 'Four.', usage: [9, 11, 0, 0], finish: 'end_turn' },
  },
  {
    what: 'citations',
    source: 'input 39: Perplexity',
    body: input('39-citations.sse'),
    expected: {
      text: 'Rome is the capital.[1][2]',
      usage: [5, 8, 0, 0],
      finish: 'end_turn',
      sources: ['https://example.org/one', 'https://example.org/two'],
    },
  },
  {
    what: 'url_citation annotations',
    source: 'OpenAI search models, OpenRouter :online',
    body: sse([
      said('Rome.'),
      call({
        annotations: [
          { type: 'url_citation', url_citation: { url: 'https://example.org/a', title: 'A' } },
          { type: 'url_citation', url_citation: { url: 'javascript:alert(1)' } },
        ],
      }),
      counted,
    ]),
    expected: { text: 'Rome.', ...end, sources: ['https://example.org/a'] },
  },
  {
    what: 'no space behind the colon and a byte-order mark',
    source: 'small servers in C',
    body: `\ufeff${sse([said('Yes.'), counted]).replaceAll('data: ', 'data:')}`,
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'events over several data lines',
    source: 'the rules of server-sent events',
    body: `data: {"choices":[{"index":0,\ndata: "delta":{"content":"Yes."}}]}\n\n${sse([counted])}`,
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'no empty line at the end',
    source: 'proxies that trim the body',
    body: sse([said('Yes.'), counted], { done: false }).trimEnd(),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'keep-alive words and empty data',
    source: 'gateways in front of slow models',
    body: `: ping\n\ndata:\n\ndata: ping\n\nevent: ping\ndata: {}\n\n${sse([said('Yes.'), counted])}`,
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'carriage returns as line ends',
    source: 'the rules of server-sent events',
    body: sse([said('Yes.'), counted]).replaceAll('\n', '\r'),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'null deltas and empty choices',
    source: 'Azure, one-api',
    body: sse([
      { choices: [] },
      { choices: null },
      { choices: [{ index: 0, delta: null }] },
      said('Yes.'),
      counted,
    ]),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'the stop reason twice',
    source: 'one-api and new-api',
    body: sse([said('Yes.'), stop, stop, counted]),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'a stop reason with calls',
    source: 'Gemini, older Ollama',
    body: sse([
      call({ tool_calls: [{ index: 0, id: 'a', function: { name: 'list', arguments: '{"path":"."}' } }] }),
      counted,
    ]),
    expected: called,
  },
  {
    what: 'tool_calls without a call',
    source: 'Ollama and Groq issues',
    body: sse([said('Yes.', { finish_reason: 'tool_calls' }), { choices: [], usage }]),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'arguments as an object',
    source: 'Ollama-like servers',
    body: sse([
      call({ tool_calls: [{ id: 'a', function: { name: 'list', arguments: { path: '.' } } }] }),
      counted,
    ]),
    expected: called,
  },
  {
    what: 'a call that is no list',
    source: 'small servers',
    body: sse([
      call({ tool_calls: { id: 'a', function: { name: 'list', arguments: '{"path":"."}' } } }),
      counted,
    ]),
    expected: called,
  },
  {
    what: 'the index as text',
    source: 'one-api',
    body: sse([
      call({ tool_calls: [{ index: '0', id: 'a', function: { name: 'list', arguments: '{"pa' } }] }),
      call({ tool_calls: [{ index: '0', function: { arguments: 'th":"."}' } }] }),
      counted,
    ]),
    expected: called,
  },
  {
    what: 'a function_call',
    source: 'the API before tools',
    body: sse([
      call({ function_call: { name: 'list', arguments: '{"path":' } }),
      call({ function_call: { arguments: '"."}' } }),
      counted,
    ]),
    expected: called,
  },
  {
    what: 'other choices',
    source: 'n > 1 by a proxy',
    body: sse([said('Yes.'), { choices: [{ index: 1, delta: { content: 'No.' } }] }, counted]),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'only reasoning details',
    source: 'OpenRouter with Claude',
    body: sse([
      call({ reasoning_details: [{ type: 'reasoning.summary', summary: 'Hm.' }] }),
      said('Yes.'),
      counted,
    ]),
    expected: { thinking: 'Hm.', text: 'Yes.', ...end },
  },
  {
    what: 'a call that its server has parsed and left in the text',
    source: 'vLLM hermes parser issues',
    body: sse([
      said('<tool_call>{"name":"list","arguments":{"path":"."}}</tool_call>'),
      call({ tool_calls: [{ index: 0, id: 'a', function: { name: 'list', arguments: '{"path": "."}' } }] }),
      counted,
    ]),
    expected: called,
  },
  {
    what: 'calls of Kimi in the text',
    source: 'MoonshotAI/K2-Vendor-Verifier issues',
    body: sse([
      said(
        'I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.list:0<|tool_call_argument_begin|>',
      ),
      said('{"path":"."}<|tool_call_end|><|tool_calls_section_end|>'),
      counted,
    ]),
    expected: { text: 'I look.', ...called },
  },
  {
    what: 'a call in the text of a Messages answer',
    source: 'Messages proxies of Qwen and GLM',
    api: 'anthropic',
    body: [
      { type: 'message_start', message: { model: 'x', usage: { input_tokens: 9, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text: 'Hm.\n</think>\n<tool_call>{"name":"list",' },
      },
      {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text: '"arguments":{"path":"."}}</tool_call>' },
      },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4 } },
      { type: 'message_stop' },
    ]
      .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      .join(''),
    expected: { thinking: 'Hm.', ...called },
  },
  {
    what: 'a whole message',
    source: 'Messages proxies that do not stream',
    api: 'anthropic',
    type: 'application/json',
    body: JSON.stringify(
      {
        type: 'message',
        role: 'assistant',
        model: 'x',
        content: [{ type: 'text', text: 'Yes.' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 9, output_tokens: 4 },
      },
      null,
      2,
    ),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'a whole answer beside an empty delta',
    source: 'Perplexity, recorded by another project',
    type: 'application/json',
    body: JSON.stringify({
      choices: [
        {
          index: 0,
          delta: { role: 'assistant', content: '' },
          message: { role: 'assistant', content: 'Yes.' },
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
    }),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'nulls where values belong',
    source: 'proxies that fill in what they do not have',
    body: sse([
      { choices: [null] },
      { choices: [null, { index: 0, delta: { content: 'Yes.' } }] },
      {
        choices: [
          { index: 0, delta: { content: [null, 'x', 7], reasoning_details: [null], tool_calls: [null] } },
        ],
      },
      {
        choices: [
          { index: 0, delta: { annotations: [null], tool_calls: [{ index: null, function: null }] } },
        ],
      },
      { choices: null, citations: [null], search_results: [null] },
      'null',
      [null],
      { ...stop, usage: { ...counted.usage, prompt_tokens_details: null, completion_tokens_details: null } },
    ]),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'nulls in a Messages answer',
    source: 'proxies that fill in what they do not have',
    api: 'anthropic',
    body: [
      { type: 'message_start', message: null },
      { type: 'content_block_start', index: 0, content_block: null },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'text', text: null, citations: [null] },
      },
      { type: 'content_block_delta', index: 1, delta: null },
      { type: 'content_block_delta', index: 1, delta: { type: 'citations_delta', citation: null } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Yes.' } },
      { type: 'content_block_stop', index: null },
      { type: 'message_delta', delta: null, usage: null },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { input_tokens: 9, output_tokens: 4 },
      },
      { type: 'message_stop' },
    ]
      .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      .join(''),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'nulls in a whole message',
    source: 'proxies that fill in what they do not have',
    api: 'anthropic',
    type: 'application/json',
    body: JSON.stringify({
      ...{ type: 'message', role: 'assistant', model: null },
      content: [null, { type: 'text', text: 'Yes.' }, { type: 'thinking', thinking: null, signature: null }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 9, output_tokens: 4, cache_read_input_tokens: null },
    }),
    expected: { text: 'Yes.', ...end },
  },
  {
    what: 'only [DONE]',
    source: 'overloaded proxies',
    body: 'data: [DONE]\n\n',
    expected: { failure: 'failed' },
  },
  { what: 'nothing at all', source: 'overloaded proxies', body: '', expected: { failure: 'failed' } },
  {
    what: 'an end in the middle',
    source: 'lost connections',
    body: sse([said('Half an ans')], { done: false }),
    expected: { failure: 'failed' },
  },
  {
    what: 'cached tokens beside the prompt',
    source: 'input 34: Grok at Azure AI Foundry',
    body: sse([
      said('Rome'),
      {
        ...stop,
        usage: {
          prompt_tokens: 7,
          completion_tokens: 1,
          total_tokens: 8,
          prompt_tokens_details: { cached_tokens: 161 },
        },
      },
    ]),
    expected: { text: 'Rome', usage: [7, 1, 161, 0], finish: 'end_turn' },
  },
  {
    what: 'reasoning counted beside the answer',
    source: 'xAI without a total',
    body: sse([
      said('Rome'),
      {
        ...stop,
        usage: {
          prompt_tokens: 7,
          completion_tokens: 1,
          completion_tokens_details: { reasoning_tokens: 30 },
        },
      },
    ]),
    expected: { text: 'Rome', usage: [7, 31, 0, 0], finish: 'end_turn' },
  },
  {
    what: 'sound counted beside the prompt',
    source: 'Voxtral at Mistral, recorded by another project',
    body: sse([
      said('Rome'),
      {
        ...stop,
        usage: {
          prompt_audio_seconds: 3,
          prompt_tokens: 7,
          completion_tokens: 1,
          total_tokens: 98,
          prompt_tokens_details: { cached_tokens: 0, audio_tokens: 90 },
        },
      },
    ]),
    expected: { text: 'Rome', usage: [97, 1, 0, 0], finish: 'end_turn' },
  },
  {
    what: 'another answer begun inside of the first',
    source: 'a proxy that asks again, fixture of another project',
    api: 'anthropic',
    body: ['Par', 'Rome']
      .flatMap((text, index) => [
        { type: 'message_start', message: { id: `msg_${index}`, model: 'x', usage: { input_tokens: 9 } } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text } },
      ])
      .concat([
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4 } },
        { type: 'message_stop' },
      ] as never[])
      .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      .join(''),
    expected: { failure: 'failed' },
  },
  {
    what: 'counts of nothing',
    source: 'gateways that fill in zeros',
    body: sse([
      said('Rome'),
      { ...stop, usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } },
    ]),
    expected: { text: 'Rome', finish: 'end_turn' },
  },
  ...['content_filter', 'IMAGE_PROHIBITED_CONTENT', 'SAFETY', 'recitation'].map((reason) => ({
    what: `nothing, for the reason ${reason}`,
    source: 'litellm 8953 and 20357, chat-ollama 695: filtered answers, also with reasons of Gemini',
    body: sse([
      { choices: [{ index: 0, delta: { content: null }, finish_reason: reason }] },
      { choices: [], usage },
    ]),
    expected: { failure: 'refused' },
  })),
  {
    what: 'a call that the server could not read',
    source: 'Gemini at its OpenAI API',
    body: sse([
      { choices: [{ index: 0, delta: {}, finish_reason: 'function_call_filter: MALFORMED_FUNCTION_CALL' }] },
    ]),
    expected: { failure: 'failed' },
  },
  {
    what: 'an error that is a bare text',
    source: 'octos 13',
    body: sse(['event: error\ndata: {"error":"Stream error: the network failed"}\n\n']),
    expected: { failure: 'overloaded' },
  },
  {
    what: 'an error in a chunk without choices',
    source: 'OmniRoute 8210: OpenRouter',
    body: sse([{ choices: [], error: { code: 502, message: 'The worker has reached its limit (33/32)' } }]),
    expected: { failure: 'overloaded' },
  },
];

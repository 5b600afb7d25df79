import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TextReader, type Written } from '../../../src/models/written/text-reader.ts';
import { holds } from '../../support/holds.ts';
import { listTool } from '../builders.ts';

type Answer = { text?: string; thinking?: string; calls?: readonly unknown[]; isRecalled?: true };

/** Returns what a reader makes of an answer that arrives in these pieces. */
function readPieces(pieces: readonly string[], tools = [listTool]): Answer {
  const reader = new TextReader(tools);
  const all: Written[] = [...pieces.flatMap((piece) => reader.take(piece)), ...reader.end()];
  let [text, thinking] = ['', ''];
  let isRecalled = false;
  let calls: unknown[] = [];
  for (const each of all) {
    if (each.kind === 'text') text += each.text;
    if (each.kind === 'thinking') thinking += each.thinking;
    if (each.kind === 'call') calls.push([each.name, JSON.parse(each.input)]);
    if (each.kind !== 'recall') continue;
    [thinking, text, calls, isRecalled] = [thinking + text, '', [], true];
  }
  return {
    ...(text !== '' && { text }),
    ...(thinking !== '' && { thinking: thinking.trim() }),
    ...(calls.length > 0 && { calls }),
    ...(isRecalled && { isRecalled }),
  };
}

const list = ['list', { path: '.' }];

/** What was written, and what it is. The forms are those that docs/models.md lists. */
const written: readonly (readonly [string, string, Answer])[] = [
  ['plain text', 'Hello, you.', { text: 'Hello, you.' }],
  ['reasoning at the beginning', '<think>Hm.</think>\n\nYes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['reasoning under another name', '\n<Thinking>\nHm.\n</Thinking>\nYes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['reasoning of Seed-OSS', '<seed:think>Hm.</seed:think>Yes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['reasoning of Magistral', '[THINK]Hm.[/THINK]Yes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['reasoning of Kimi', '◁think▷Hm.◁/think▷Yes.', { thinking: 'Hm.', text: 'Yes.' }],
  [
    'reasoning and solution of OpenThinker',
    '<|begin_of_thought|>Hm.<|end_of_thought|>\n\n<|begin_of_solution|>Yes.<|end_of_solution|>',
    { thinking: 'Hm.', text: 'Yes.' },
  ],
  [
    'reasoning of Command A',
    '<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>',
    { thinking: 'Hm.', text: 'Yes.' },
  ],
  ['reasoning of Gemma', '<|channel>thought\nHm.<channel|>Yes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['reasoning that never ends', '<think>Hm. And then', { thinking: 'Hm. And then' }],
  ['an empty block of reasoning', '<think>\n\n</think>\n\nYes.', { text: 'Yes.' }],
  [
    'reasoning between two texts',
    'One.\n<think>Hm.</think>\nTwo.',
    { thinking: 'Hm.', text: 'One.\n\nTwo.' },
  ],
  [
    'reasoning that mentions its own mark',
    '<think>They ask about `</think>` and how to strip </think> tags.\n</think>\nSo.',
    { thinking: 'They ask about `</think>` and how to strip </think> tags.', text: 'So.' },
  ],
  [
    'reasoning without an opening mark',
    'Ann is upset. I stay silent.\n</think>\n\nNO_REPLY',
    { thinking: 'Ann is upset. I stay silent.', text: 'NO_REPLY', isRecalled: true },
  ],
  [
    'reasoning without an opening mark on one line',
    'They said hi.</think>Hello!',
    { thinking: 'They said hi.', text: 'Hello!', isRecalled: true },
  ],
  [
    'reasoning whose end is a word of its own',
    'So I stay silent </think> NO_REPLY',
    { thinking: 'So I stay silent', text: 'NO_REPLY', isRecalled: true },
  ],
  ['a closing mark without reasoning', '</think>\n\nHello!', { text: 'Hello!' }],
  [
    'a sentence about the mark',
    'How do I strip </think> tags? Use a pattern that matches </think>, like so.',
    { text: 'How do I strip </think> tags? Use a pattern that matches </think>, like so.' },
  ],
  [
    'a quoted mark',
    'It ends with "</think>" or (</think>).',
    { text: 'It ends with "</think>" or (</think>).' },
  ],
  ['both marks in a sentence', 'See <think>this</think> now.', { text: 'See <think>this</think> now.' }],
  [
    'marks in code',
    'Write `</think>`:\n```xml\n<think>\nHm.\n</think>\n<tool_call>{}</tool_call>\n```\nDone.',
    { text: 'Write `</think>`:\n```xml\n<think>\nHm.\n</think>\n<tool_call>{}</tool_call>\n```\nDone.' },
  ],
  [
    'Harmony with reasoning and an answer',
    '<|channel|>analysis<|message|>2+2?<|end|><|start|>assistant<|channel|>final<|message|>four<|return|>',
    { thinking: '2+2?', text: 'four' },
  ],
  [
    'Harmony with a call',
    '<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary to=functions.list <|constrain|>json<|message|>{"path":"."}<|call|>',
    { thinking: 'Look.', calls: [list] },
  ],
  [
    'Harmony with the recipient first',
    '<|start|>assistant to=functions.list<|channel|>commentary<|message|>{"path":"."}<|call|>',
    { calls: [list] },
  ],
  [
    'Harmony with an answer in the wrong channel',
    '<|channel|>commentary<|message|>four<|end|>',
    { thinking: 'four', text: 'four' },
  ],
  [
    'Harmony without its tokens',
    'analysisThey ask 2+2.assistantfinalfour',
    { thinking: 'They ask 2+2.', text: 'four' },
  ],
  ['the end of a turn', 'Yes.<|im_end|>', { text: 'Yes.' }],
  ['the end of a turn of DeepSeek', 'Yes.<｜end▁of▁sentence｜>', { text: 'Yes.' }],
  ['the end of a turn of Llama 2', 'Yes.</s>', { text: 'Yes.' }],
  ['the end of a turn of Gemma', 'Yes.<end_of_turn>\n', { text: 'Yes.' }],
  ['struck-out text in HTML', '<s>No</s> Yes.', { text: '<s>No</s> Yes.' }],
  ['a model that plays the person', 'Yes.<|im_end|>\n<|im_start|>user\nAnd now?', { text: 'Yes.' }],
  [
    'a call of DeepSeek V3.2',
    'Let me look.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="list">\n<｜DSML｜parameter name="path" string="true">.</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    { text: 'Let me look.', calls: [list] },
  ],
  [
    'a call of DeepSeek V4 with other bars',
    '<‖DSML‖tool_calls><‖DSML‖invoke name="list"><‖DSML‖parameter name="path" string="true">.</‖DSML‖parameter></‖DSML‖invoke></‖DSML‖tool_calls>',
    { calls: [list] },
  ],
  [
    'a call of DeepSeek V3.1',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>list<｜tool▁sep｜>{"path":"."}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    { calls: [list] },
  ],
  [
    'a call of DeepSeek R1',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>list\n```json\n{"path":"."}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    { calls: [list] },
  ],
  [
    'two calls of Kimi',
    'I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.list:0<|tool_call_argument_begin|>{"path":"."}<|tool_call_end|><|tool_call_begin|>functions.list:1<|tool_call_argument_begin|>{"path":"b"}<|tool_call_end|><|tool_calls_section_end|>',
    { text: 'I look.', calls: [list, ['list', { path: 'b' }]] },
  ],
  [
    'a call of Hermes',
    '<tool_call>\n{"name": "list", "arguments": {"path": "."}}\n</tool_call>',
    { calls: [list] },
  ],
  [
    'a call of Hermes behind a sentence',
    'I look. <tool_call>{"name":"list","arguments":{"path":"."}}</tool_call>',
    {
      text: 'I look. ',
      calls: [list],
    },
  ],
  [
    'a call of Hermes without its end',
    '<tool_call>\n{"name":"list","arguments":{"path":"."}}',
    { calls: [list] },
  ],
  [
    'a call whose last bracket is missing',
    '<tool_call>{"name":"list","arguments":{"path":"."}</tool_call>',
    {
      calls: [list],
    },
  ],
  [
    'a call whose arguments contain its mark',
    '<tool_call>{"name":"list","arguments":{"path":"</tool_call>"}}</tool_call>Done.',
    { text: 'Done.', calls: [['list', { path: '</tool_call>' }]] },
  ],
  [
    'a call with line breaks in its arguments',
    '<tool_call>{"name":"list","arguments":{"path":"a\nb"}}</tool_call>',
    { calls: [['list', { path: 'a\nb' }]] },
  ],
  [
    'a call of Qwen3-coder',
    '<tool_call>\n<function=list>\n<parameter=path>\n.\n</parameter>\n</function>\n</tool_call>',
    { calls: [list] },
  ],
  [
    'a call of Qwen3-coder without its frame',
    '<function=list>\n<parameter=path>\n.\n</parameter>\n</function>',
    {
      calls: [list],
    },
  ],
  ['a call of Llama 3.1', '<function=list>{"path": "."}</function>', { calls: [list] }],
  ['a call of Llama at Groq', '<function=list{"path": "."}></function>', { calls: [list] }],
  ['a call of Llama 3', '<|python_tag|>{"name": "list", "parameters": {"path": "."}}', { calls: [list] }],
  ['a call of Llama without a mark', '{"name": "list", "parameters": {"path": "."}}', { calls: [list] }],
  [
    'two calls of Llama without a mark',
    '{"name":"list","parameters":{"path":"."}}; {"name":"list","parameters":{"path":"b"}}',
    {
      calls: [list, ['list', { path: 'b' }]],
    },
  ],
  ['a call of Llama 4', '[list(path=".")]', { calls: [list] }],
  ['a call of Mistral', '[TOOL_CALLS][{"name": "list", "arguments": {"path": "."}}]', { calls: [list] }],
  ['a call of newer Mistral', '[TOOL_CALLS]list[CALL_ID]a1[ARGS]{"path": "."}', { calls: [list] }],
  [
    'a call of GLM',
    '<tool_call>list\n<arg_key>path</arg_key>\n<arg_value>.</arg_value>\n</tool_call>',
    {
      calls: [list],
    },
  ],
  [
    'a call of MiniMax',
    '<minimax:tool_call>\n<invoke name="list">\n<parameter name="path">.</parameter>\n</invoke>\n</minimax:tool_call>',
    { calls: [list] },
  ],
  [
    'a call in the form of Claude',
    'I look.\n<function_calls>\n<invoke name="list">\n<parameter name="path">.</parameter>\n</invoke>\n</function_calls>',
    { text: 'I look.', calls: [list] },
  ],
  ['a call of Granite', '<|tool_call|>[{"name": "list", "arguments": {"path": "."}}]', { calls: [list] }],
  ['a call of Phi', 'functools[{"name": "list", "arguments": {"path": "."}}]', { calls: [list] }],
  [
    'a call of Nemotron',
    '<TOOLCALL>[{"name": "list", "arguments": {"path": "."}}]</TOOLCALL>',
    { calls: [list] },
  ],
  [
    'a call of Command R',
    '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "list", "parameters": {"path": "."}}]<|END_ACTION|>',
    { calls: [list] },
  ],
  ['a call of LFM2', '<|tool_call_start|>[list(path=".")]<|tool_call_end|>', { calls: [list] }],
  [
    'a call inside reasoning that never ends',
    '<think>I look.\n<tool_call>{"name":"list","arguments":{"path":"."}}</tool_call>',
    {
      thinking: 'I look.\n<tool_call>{"name":"list","arguments":{"path":"."}}</tool_call>',
      calls: [list],
    },
  ],
  [
    'a result that the model made up',
    'I know.\n<tool_response>{"a":1}</tool_response>\nSo.',
    {
      text: 'I know.\n\nSo.',
    },
  ],
  [
    'a sentence about calls',
    'Qwen writes <tool_call> tags around it.',
    {
      text: 'Qwen writes <tool_call> tags around it.',
    },
  ],
  ['an answer in JSON', '{"name": "Ann", "age": 3}', { text: '{"name": "Ann", "age": 3}' }],
  [
    'a list of links',
    '[one](https://example.org) and [two]',
    { text: '[one](https://example.org) and [two]' },
  ],
  ['a comparison', 'a < b, c <d and e<f', { text: 'a < b, c <d and e<f' }],
];

describe('text written by a model', () => {
  it.each(written)('reads text as what it is: %s', (_what, whole, expected) => {
    expect(readPieces([whole])).toEqual(expected);
  });

  it.each(written)('reads text the same wherever it is split: %s', (_what, whole, expected) => {
    expect(readPieces([...whole])).toEqual(expected);
    for (let at = 1; at < whole.length; at += 1)
      expect(readPieces([whole.slice(0, at), whole.slice(at)]), `split at ${at}`).toEqual(expected);
  });

  it('reads text the same in any pieces and in any order', () => {
    const parts = fc.array(
      fc.constantFrom(...written.map(([, whole]) => whole), '\n', ' ', '`', '<', '</think>', '```\n'),
      {
        maxLength: 5,
      },
    );
    const property = fc.property(
      parts,
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (all, sizes) => {
        const whole = all.join('');
        const pieces: string[] = [];
        for (let at = 0, n = 0; at < whole.length; n += 1) {
          const size = sizes[n % sizes.length] ?? 1;
          pieces.push(whole.slice(at, at + size));
          at += size;
        }
        expect(safely(pieces)).toEqual(safely([whole]));
      },
    );
    holds(property, { numRuns: 3_000, interruptAfterTimeLimit: 4_000 });
  });

  it('finds no call if no tool was offered', () => {
    const { calls: _, ...rest } = readPieces(
      ['Look.\n<tool_call>{"name":"list","arguments":{}}</tool_call>'],
      [],
    );
    expect(rest).toEqual({ text: 'Look.' });
  });
});

/** Reads an answer whose arguments need not be JSON. */
function safely(pieces: readonly string[]): unknown {
  try {
    return readPieces(pieces);
  } catch (error) {
    if (error instanceof SyntaxError) return 'no JSON';
    throw error;
  }
}

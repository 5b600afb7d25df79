import { describe, expect, it } from 'vitest';
import { sanitizeOutbound, sanitizeStreaming } from '../../src/replies/scaffolding.ts';
import { stripControls } from '../../src/texts/untrusted-text.ts';

const clean = (text: string) => sanitizeOutbound(text).text;

describe('the sanitizing of outbound text', () => {
  it.each([
    ['<think>secret</think>Hello', 'Hello'],
    ['<thinking>\nsecret\n</thinking>\n\nHello', 'Hello'],
    ['<antThinking>secret</antThinking>Hello', 'Hello'],
    ['<think>a<think>b</think>c</think>Hello', 'Hello'],
    ['Hello</think> there', 'Hello there'],
    ['<think>never closed', ''],
    ['<final>Hello</final>', 'Hello'],
    ['<tool_call>{"name":"x"}</tool_call>Hello', 'Hello'],
    [
      '<function_calls>\n<invoke name="x"><parameter name="y">1</parameter></invoke>\n</function_calls>\nHello',
      'Hello',
    ],
    ['[TOOL_CALL]{"a":1}[/TOOL_CALL]\nHello', 'Hello'],
    ['Hello<|im_end|>', 'Hello'],
    ['<|im_start|>Hello', 'Hello'],
    ['[INST]Hello[/INST]', 'Hello'],
    ['<｜end▁of▁sentence｜>Hello', 'Hello'],
    ['<<<untrusted 0af3 quote from Ann>>>\nHello\n<<<end untrusted 0af3>>>', '\nHello\n'],
  ])('removes scaffolding from %j (pitfall 27)', (text, expected) => {
    expect(clean(text)).toBe(expected);
  });

  it.each([
    'Write `<think>` around it.',
    'The <think> tag'.replace('<think>', '`<think>`'),
    '```xml\n<think>x</think>\n```',
    '~~~\n<|im_end|>\n~~~',
    'a < b and c > d',
    'I <3 you',
    '<b>bold</b>',
    'x[0] and [link](https://a.b)',
    'List<String>',
    '1 << 3',
    '<<EOF',
    'a <= b',
    '[x] done',
    '[INSTALL]',
  ])('leaves %j unchanged', (text) => {
    expect(clean(text)).toBe(text);
    expect(sanitizeStreaming(`${text}\n.`)).toBe(`${text}\n.`);
  });

  it.each([
    'Use the <think> tag for that.',
    'The closing </think> tag is missing.',
    'It never writes </think>, so the template is wrong.',
    'Put it between <think> and </think> tags.',
    'Write "</think>" (or ‘</tool_call>’) at the end.',
    '答案 </think> 之后',
  ])('keeps a tag that a sentence mentions: %j', (text) => {
    expect(clean(text)).toBe(text);
    expect(sanitizeStreaming(`${text}\n.`)).toMatch(text.slice(0, text.indexOf('<')));
  });

  it.each([
    ['Hello.\n</think>\nThere', 'Hello.\n\nThere'],
    ['So I answer. </think> Hello', 'So I answer.  Hello'],
    ['I say <think>it is a secret</think> hello', 'I say  hello'],
    ['I say <think> it is a secret </think> hello', 'I say  hello'],
    ['Hello there </think>', 'Hello there '],
  ])("removes a tag that isn't a word of a sentence from %j", (text, expected) => {
    expect(clean(text)).toBe(expected);
  });

  it.each([
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u001b]8;;https://evil.example\u0007label\u001b]8;;\u0007', 'label'],
    ['\u001b]0;title\u001b\\x', 'x'],
    ['\u009b31mred', 'red'],
    ['a\u0008b\u007fc\u0085d', 'abcd'],
    ['a\r\nb\rc\u2028d', 'a\nb\nc\nd'],
    ['a\u202eb\u2066c\u2069d', 'abcd'],
    ['a\u200bb\u2060c\ufeffd', 'abcd'],
    ['a\u200db\u200cc', 'abc'],
    ['a\u0000b\ud83dc\udc00', 'a\ufffdb\ufffdc\ufffd'],
    ['x\u{e0041}\u{e0042}y', 'xy'],
  ])('removes controls and invisible characters from %j', (text, expected) => {
    expect(stripControls(text)).toBe(expected);
  });

  it.each(['👨‍👩‍👧', '👩🏽‍💻', '❤️‍🔥', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🇩🇪', 'می‌خواهم', 'क्‍ष', 'שלום\u200f!', 'a\tb\nc'])(
    'keeps the joiners and marks that %j needs',
    (text) => {
      expect(stripControls(text)).toBe(text);
    },
  );

  it('finds explicit reply tags and removes them', () => {
    expect(sanitizeOutbound('[[reply_to_current]] Hello')).toEqual({ text: 'Hello', replyTag: 'current' });
    expect(sanitizeOutbound('Hello [[reply_to: 4711]]')).toEqual({ text: 'Hello ', replyTag: '4711' });
    expect(sanitizeOutbound('Hello `[[reply_to_current]]`').replyTag).toBeUndefined();
  });

  it('never shows half a marker while the text grows', () => {
    const text =
      '<think>secret</think>Hello <|im_end|>you<tool_call>{"a":1}</tool_call> [[reply_to:12]]there, no </think> tag and no <think> x </think> or </think>';
    for (let length = 0; length <= text.length; length += 1) {
      const shown = sanitizeStreaming(text.slice(0, length));
      expect(clean(text).startsWith(shown)).toBe(true);
    }
  });
});

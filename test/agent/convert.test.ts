import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { transcriptId } from '#contracts/ids.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import { createConverter, type LoadImage } from '../../src/agent/convert.ts';
import { budget, holds } from '../support/holds.ts';
import { aPng } from '../support/one-pixel.ts';
import { aMessage, userSays } from './support/builders.ts';
import { llmErrors } from './support/llm-grammar.ts';

const loadImage: LoadImage = async (path) => {
  if (path.endsWith('large.png')) return 'unfit';
  return path.endsWith('gone.png') ? undefined : { mimeType: 'image/png', base64: 'AAAA' };
};
const convert = createConverter({ loadImage });

const text = (value: string): MessagePart => ({ type: 'text', data: { text: value } });
const binary = (path: string, mime_type: string): MessagePart => ({
  type: 'binary',
  data: { path, mime_type },
});
const finish = (reason: 'end_turn' | 'tool_use' | 'interrupted' | 'canceled' = 'end_turn'): MessagePart => ({
  type: 'finish',
  data: { reason, time: 0 },
});
const call = (id: string, input = '{}'): MessagePart => ({
  type: 'tool_call',
  data: { id, name: 'a', input, finished: true },
});
const result = (id: string, content = `result of ${id}`): MessagePart => ({
  type: 'tool_result',
  data: { tool_call_id: id, name: 'a', content, is_error: false },
});
const use = (id: string, input: object = {}) => ({ type: 'tool_use', id, name: 'a', input });
const answer = (id: string, content = `result of ${id}`, isError = false) => ({
  type: 'tool_result',
  toolCallId: id,
  content,
  isError,
});

describe("the provider's message format", () => {
  it('joins consecutive messages of one side', async () => {
    const messages = [
      userSays('1', 'a'),
      userSays('2', 'b'),
      aMessage('assistant', '3', text('c'), finish()),
    ];
    expect(await convert(messages)).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'assistant', content: [{ type: 'text', text: 'c' }] },
    ]);
  });

  it('puts the results of a batch first and in source order, whatever lies between', async () => {
    const messages = [
      userSays('1', 'go'),
      aMessage('assistant', '2', call('x'), call('y'), finish('tool_use')),
      userSays('3', 'wait'),
      aMessage('tool', '4', result('y')),
      aMessage('tool', '5', result('x')),
      aMessage('tool', '6', result('x', 'again')),
    ];
    expect((await convert(messages)).slice(1)).toEqual([
      { role: 'assistant', content: [use('x'), use('y')] },
      { role: 'user', content: [answer('x'), answer('y'), { type: 'text', text: 'wait' }] },
    ]);
  });

  it('leaves out interrupted answers and their results', async () => {
    const messages = [
      userSays('1', 'go'),
      aMessage('assistant', '2', text('half'), call('x')),
      aMessage('tool', '3', result('x')),
      aMessage('assistant', '4', text('half'), finish('interrupted')),
      aMessage('assistant', '5', text('kept'), finish('canceled')),
    ];
    expect(await convert(messages)).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'go' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'kept' }] },
    ]);
  });

  it('tells the model about a call whose result a crash lost', async () => {
    const messages = [
      userSays('1', 'go'),
      aMessage('assistant', '2', call('x', '{"a":1}'), call('y', '{"cut'), finish('tool_use')),
      aMessage('tool', '3', result('x')),
    ];
    expect((await convert(messages)).slice(1)).toEqual([
      { role: 'assistant', content: [use('x', { a: 1 }), use('y')] },
      {
        role: 'user',
        content: [answer('x'), answer('y', 'interrupted by a restart, outcome unknown', true)],
      },
    ]);
  });

  it('gives each repeated call id its own result', async () => {
    const messages = [
      userSays('1', 'go'),
      aMessage('assistant', '2', call('x'), finish('tool_use')),
      aMessage('tool', '3', result('x', 'first')),
      aMessage('assistant', '4', call('x'), finish('tool_use')),
      aMessage('tool', '5', result('x', 'second')),
    ];
    expect((await convert(messages)).slice(1)).toEqual([
      { role: 'assistant', content: [use('x')] },
      { role: 'user', content: [answer('x', 'first')] },
      { role: 'assistant', content: [use('x_2')] },
      { role: 'user', content: [answer('x_2', 'second')] },
    ]);
  });

  it('shortens ids and names as every provider requires, and keeps ids distinct', async () => {
    const long = `chatcmpl-tool-${'0'.repeat(32)}`;
    const calls = ['a', 'b'].map((end) => {
      const { data } = call(`${long}${end}`) as Extract<MessagePart, { type: 'tool_call' }>;
      return { type: 'tool_call', data: { ...data, name: 'n'.repeat(100) } } as const;
    });
    const [, answered] = await convert([
      userSays('1', 'go'),
      aMessage('assistant', '2', ...calls, finish('tool_use')),
    ]);
    const uses = answered?.content.filter((block) => block.type === 'tool_use') ?? [];
    expect(new Set(uses.map(({ id }) => id)).size).toBe(2);
    for (const { id, name } of uses) expect([id.length <= 40, name.length <= 64]).toEqual([true, true]);
  });

  it('keeps signed reasoning and drops reasoning that is unsigned or ends the answer', async () => {
    const reasoning = (thinking: string, signature?: string): MessagePart => ({
      type: 'reasoning',
      data: signature === undefined ? { thinking } : { thinking, signature },
    });
    const by = (model: string, id: string, ...parts: MessagePart[]) => ({
      ...aMessage('assistant', id, ...parts, finish()),
      model,
    });
    const messages = [
      userSays('1', 'go'),
      by('m', '2', reasoning('a', 'sig'), reasoning('b'), text('hi'), reasoning('c', 's')),
      userSays('3', 'on'),
      by('m', '4', reasoning('only', 'sig')),
    ];
    const [, first, ...rest] = await convert(messages);
    expect(first?.content).toEqual([
      { type: 'thinking', thinking: 'a', signature: 'sig', model: 'm' },
      { type: 'text', text: 'hi' },
    ]);
    expect(rest).toEqual([{ role: 'user', content: [{ type: 'text', text: 'on' }] }]);
  });

  it('shows the newest images and loads no more of a long conversation than it shows', async () => {
    const loaded: string[] = [];
    const counting = createConverter({
      loadImage: (path) => {
        loaded.push(path);
        return loadImage(path);
      },
    });
    const paths = Array.from({ length: 45 }, (_, index) => `/data/${index}.png`);
    const messages = paths.map((path) => aMessage('user', path, binary(path, 'image/png')));
    const blocks = (await counting(messages)).flatMap(({ role, content }) =>
      role === 'user' ? content : [],
    );
    expect(loaded).toEqual(paths.slice(-20));
    // Images are dropped ten at a time.
    const earlier = { type: 'text', text: '[an earlier image, no longer shown]' };
    expect(blocks.map(({ type }) => type)).toEqual(paths.map((_, index) => (index < 30 ? 'text' : 'image')));
    expect(blocks[0]).toEqual(earlier);
    expect(blocks[29]).toEqual(earlier);
  });

  it('shows images, names other files and says what is gone', async () => {
    const url = (value: string): MessagePart => ({ type: 'image_url', data: { url: value } });
    const message = aMessage(
      'user',
      '1',
      binary('/data/a.png', 'image/png'),
      binary('/data/gone.png', 'image/png'),
      binary('/data/large.png', 'image/png'),
      binary('/data/notes.pdf', 'application/pdf'),
      url(`data:image/jpeg;base64,${aPng.base64}`),
      url('data:image/png;base64,BBBB'),
      url('http://169.254.169.254/x.png'),
    );
    const [user] = await convert([message]);
    expect(user?.content).toEqual([
      { type: 'image', mimeType: 'image/png', base64: 'AAAA' },
      { type: 'text', text: '[attached image, no longer available: gone.png]' },
      { type: 'text', text: '[attached image, too large to show or damaged: large.png]' },
      { type: 'text', text: '[attached file: notes.pdf, application/pdf]' },
      { type: 'image', ...aPng },
      { type: 'text', text: '[an image that cannot be shown]' },
      { type: 'text', text: '[linked image: http://169.254.169.254/x.png]' },
    ]);
  });

  it('shows of the images in old results only those that every provider accepts', async () => {
    const ofSize = (width: number, height: number, bytes = 30) => {
      const head = Buffer.alloc(bytes);
      head.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1');
      head.writeUInt32BE(width, 16);
      head.writeUInt32BE(height, 20);
      return head.toString('base64');
    };
    const [fits, wide, high, long, none] = [
      ofSize(1_568, 1_568),
      ofSize(8_001, 10),
      ofSize(10, 50_000),
      ofSize(10, 10, 4_500_000),
      ofSize(0, 0),
    ];
    const messages = [fits, wide, high, long, none, fits].flatMap((base64, n) => {
      const image: MessagePart = { type: 'image_url', data: { url: `data:image/png;base64,${base64}` } };
      return [
        aMessage('assistant', `a${n}`, call(`c${n}`), finish('tool_use')),
        aMessage('tool', `t${n}`, result(`c${n}`), image),
      ];
    });
    const request = await convert([userSays('u1', 'look'), ...messages, userSays('u2', 'and now?')]);
    const blocks = request.flatMap(({ role, content }) => (role === 'user' ? content : []));
    const image = { type: 'image', mimeType: 'image/png', base64: fits };
    expect(blocks.filter(({ type }) => type === 'image')).toEqual([image, image]);
    const left = { type: 'text', text: '[an image that cannot be shown]' };
    expect(blocks.filter((block) => block.type === 'text' && block.text === left.text)).toHaveLength(4);
    expect(blocks.filter(({ type }) => type === 'tool_result')).toHaveLength(6);
    expect(blocks.at(-1)).toEqual({ type: 'text', text: 'and now?' });
  });

  it("marks the gateway's own notes, and opens a cut history with one", async () => {
    const messages = [
      aMessage('assistant', '1', text('hi'), finish()),
      aMessage('system', '2', text('edited')),
    ];
    expect(await convert(messages)).toEqual([
      { role: 'user', content: [{ type: 'text', text: '[Earlier messages are not shown.]' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'hi' }] },
      { role: 'user', content: [{ type: 'text', text: '[Note from the gateway] edited' }] },
    ]);
  });
});

const someText = fc.oneof(fc.constantFrom('', '  ', 'hi', '\ud800', 'a\u0000b'), fc.string());
const someId = fc.constantFrom('x', 'y', 'z', 'x_2', 'odd id:1', '');
const somePart: fc.Arbitrary<MessagePart> = fc.oneof(
  someText.map(text),
  fc.record({
    type: fc.constant('reasoning' as const),
    data: fc.oneof(
      fc.record({ thinking: someText, signature: fc.constant('sig') }),
      fc.record({ thinking: someText }),
    ),
  }),
  fc.record({
    type: fc.constant('tool_call' as const),
    data: fc.record({
      id: someId,
      name: fc.constantFrom('a', 'odd name', ''),
      input: fc.constantFrom('{}', '{"a":1}', '{"cut', '', '[]', '7', 'null'),
      finished: fc.boolean(),
    }),
  }),
  fc.record({ id: someId, content: someText }).map(({ id, content }) => result(id, content)),
  fc.record({
    type: fc.constant('finish' as const),
    data: fc.record({
      reason: fc.constantFrom(
        'end_turn',
        'tool_use',
        'canceled',
        'interrupted',
        'error',
        'permission_denied',
      ),
      time: fc.constant(0),
    }),
  }),
  fc.constantFrom<MessagePart>(
    { type: 'binary', data: { path: '/data/a.png', mime_type: 'image/png' } },
    { type: 'binary', data: { path: '/data/b.txt', mime_type: 'text/plain' } },
    { type: 'image_url', data: { url: 'data:image/png;base64,AA' } },
  ),
);
const anyTranscript = fc
  .array(
    fc.record({
      role: fc.constantFrom('user', 'assistant', 'tool', 'system'),
      parts: fc.array(somePart, { maxLength: 5 }),
    }),
    { maxLength: 12 },
  )
  .map((list) =>
    list.map(
      ({ role, parts }, index): AgentMessage => ({ id: transcriptId(`${index}`), role, parts, createdAt: 0 }),
    ),
  );

describe('any transcript, cut off anywhere', () => {
  it('converts any transcript into a history that a strict provider accepts', () =>
    holds(
      fc.asyncProperty(anyTranscript, async (messages) => {
        expect(llmErrors(await convert(messages))).toEqual([]);
      }),
      budget(50_000),
    ));

  it('loses no text of a person', () =>
    holds(
      fc.asyncProperty(anyTranscript, async (messages) => {
        const said = messages.flatMap(({ role, parts }) =>
          role === 'user' ? parts.flatMap((part) => (part.type === 'text' ? [part.data.text] : [])) : [],
        );
        const shown = (await convert(messages)).flatMap(({ role, content }) =>
          role === 'user' ? content.flatMap((block) => (block.type === 'text' ? [block.text] : [])) : [],
        );
        for (const each of said) {
          if (each.trim() !== '') expect(shown).toContain(each.toWellFormed().replaceAll('\u0000', '\ufffd'));
        }
      }),
      budget(50_000),
    ));
});

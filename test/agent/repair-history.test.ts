import { expect, it } from 'vitest';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import type { ModelFailure } from '#contracts/model.ts';
import { requestOf } from '../../src/agent/convert.ts';
import { marksFor } from '../../src/agent/repair-history.ts';
import { aPng } from '../support/one-pixel.ts';
import { aMessage, userSays } from './support/builders.ts';

const image: MessagePart = { type: 'image_url', data: { url: `data:image/png;base64,${aPng.base64}` } };
const call = (id: string): MessagePart => ({
  type: 'tool_call',
  data: { id, name: 'look', input: '{}', finished: true },
});
const result = (id: string): MessagePart => ({
  type: 'tool_result',
  data: { tool_call_id: id, name: 'look', content: 'seen', is_error: false },
});
const ends = (reason: 'end_turn' | 'tool_use'): MessagePart => ({
  type: 'finish',
  data: { reason, time: 1 },
});

const refusal: ModelFailure = {
  kind: 'unsendable',
  detail: '400 invalid_request_error Could not process image',
};
const idsOf = (messages: readonly AgentMessage[]) =>
  marksFor(refusal, requestOf(messages), messages).map(({ id }) => id);

const before = [
  aMessage('user', 'old photo', image),
  aMessage('assistant', 'call', call('1'), ends('tool_use')),
  aMessage('tool', 'its result', result('1')),
  aMessage('assistant', 'answer', { type: 'text', data: { text: 'Nice.' } }, ends('end_turn')),
];

it('removes unanswered images first, then earlier ones, and no call without an image', () => {
  const messages = [...before, aMessage('user', 'new photo', image), userSays('words', 'and this?')];
  expect(idsOf(messages)).toEqual(['new photo']);
  const marked = messages.map((each) =>
    each.id === 'new photo' ? { ...each, unsendable: 'content' as const } : each,
  );
  expect(idsOf(marked)).toEqual(['old photo']);
});

it('removes the image of a result together with its call', () => {
  const looked = [
    ...before,
    userSays('words', 'look at it'),
    aMessage('assistant', 'look', call('2'), ends('tool_use')),
    aMessage('tool', 'what it saw', result('2'), image),
  ];
  expect(idsOf(looked)).toEqual(['look']);
});

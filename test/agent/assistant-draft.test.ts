import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { transcriptId } from '#contracts/ids.ts';
import { textOf, toolCallsOf } from '#contracts/message.ts';
import type { ModelEvent } from '#contracts/model.ts';
import { AssistantDraft } from '../../src/agent/assistant-draft.ts';
import { requestOf } from '../../src/agent/convert.ts';
import { budget, holds } from '../support/holds.ts';
import { aMessage, userSays } from './support/builders.ts';

function partsAfter(events: readonly ModelEvent[], taken = new Set<string>()) {
  const draft = new AssistantDraft(transcriptId('m'), 0, taken);
  for (const event of events) draft.write(event);
  return draft.finish('end_turn', { time: 5, model: 'x' }).parts;
}

describe('an assistant message being written', () => {
  it('joins the pieces of each part and keeps the parts in order', () => {
    const parts = partsAfter([
      { type: 'thinking_delta', thinking: 'hm' },
      { type: 'thinking_delta', thinking: 'm', signature: 'sig' },
      { type: 'thinking_delta', thinking: 'next' },
      { type: 'content_start' },
      { type: 'content_delta', text: 'a' },
      { type: 'content_delta', text: 'b' },
      { type: 'content_stop' },
      { type: 'content_start' },
      { type: 'content_delta', text: 'c' },
    ]);
    expect(parts).toEqual([
      { type: 'reasoning', data: { thinking: 'hmm', signature: 'sig' } },
      { type: 'reasoning', data: { thinking: 'next' } },
      { type: 'text', data: { text: 'ab' } },
      { type: 'text', data: { text: 'c' } },
      { type: 'finish', data: { reason: 'end_turn', time: 5 } },
    ]);
  });

  it('writes interleaved calls each to its own part', () => {
    const parts = partsAfter([
      { type: 'tool_use_start', id: '1', name: 'a' },
      { type: 'tool_use_start', id: '2', name: 'b' },
      { type: 'tool_use_delta', id: '1', json: '{"x"' },
      { type: 'tool_use_delta', id: '2', json: '{}' },
      { type: 'tool_use_delta', id: '1', json: ':1}' },
      { type: 'tool_use_stop', id: '1' },
      { type: 'tool_use_delta', id: '9', json: 'of no call' },
    ]);
    expect(parts.slice(0, 2)).toEqual([
      { type: 'tool_call', data: { id: '1', name: 'a', input: '{"x":1}', finished: true } },
      { type: 'tool_call', data: { id: '2', name: 'b', input: '{}', finished: false } },
    ]);
  });

  it('keeps the signature that the provider wants back with a call', () => {
    const parts = partsAfter([
      { type: 'tool_use_start', id: '1', name: 'a' },
      { type: 'tool_use_stop', id: '1', signature: 'signed' },
    ]);
    const call = { id: '1', name: 'a', input: '', finished: true, signature: 'signed' };
    expect(parts[0]).toEqual({ type: 'tool_call', data: call });
    const [, answer] = requestOf([userSays('p', 'go'), aMessage('assistant', 'm', ...parts)]);
    expect(answer?.content).toEqual([
      { type: 'tool_use', id: '1', name: 'a', input: {}, signature: 'signed' },
    ]);
  });

  it('ends an answer that is too long, however large the last piece is', () => {
    const draft = new AssistantDraft(transcriptId('m'), 0, new Set());
    const piece = 'x'.repeat(1_500_000);
    draft.write({ type: 'thinking_delta', thinking: piece });
    expect(draft.isFull).toBe(false);
    draft.write({ type: 'content_delta', text: piece });
    expect(draft.isFull).toBe(true);
    draft.write({ type: 'content_delta', text: piece });
    draft.write({ type: 'thinking_delta', thinking: '', signature: piece });
    const { parts } = draft.finish('max_tokens', { time: 5 });
    expect(textOf(parts)).toHaveLength(500_001);
    expect(JSON.stringify(parts).length).toBeLessThan(2_001_000);
  });

  it('keeps as many arguments as the loop can read, across all calls of an answer', () => {
    const json = (values: number) => `{"list":[${Array(values).fill('1').join()}]}`;
    const events = [5_000, 5_000, 5_000, 5_000, 5_000, 1].flatMap((values, index): ModelEvent[] => {
      const id = `${index}`;
      return [
        { type: 'tool_use_start', id, name: 'a' },
        { type: 'tool_use_delta', id, json: json(values) },
        { type: 'tool_use_stop', id },
      ];
    });
    const calls = toolCallsOf(partsAfter(events));
    expect(calls.map(({ refusal }) => refusal === undefined)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(calls[5]).toMatchObject({ input: '{}', refusal: expect.stringMatching(/more than 20000 values/) });
  });

  it('keeps a character whole whose halves arrive in two pieces', () =>
    holds(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (pieces) => {
        const whole = pieces.join('');
        const units = Array.from({ length: whole.length }, (_, index) => whole[index] ?? '');
        const parts = partsAfter(units.map((text) => ({ type: 'content_delta', text })));
        expect(textOf(parts)).toBe(whole.replaceAll('\u0000', '\ufffd'));
      }),
      budget(5000),
    ));
});

import { describe, expect, it } from 'vitest';
import type { MessagePart } from '../../src/contracts/message.ts';
import {
  leadsOf,
  quoteNewest,
  saidLine,
  summaryOf,
  toolLine,
  withLeads,
} from '../../src/replies/answer-leads.ts';

const thinking = (text: string): MessagePart => ({ type: 'reasoning', data: { thinking: text } });
const call = (name: string, input: string) => ({ id: 'c', name, input, finished: true });
const limits = { maxLength: 200 };

describe('what precedes an answer', () => {
  it('shows a finished call as one line with its arguments, and an error with its reason', () => {
    const done = { text: 'a long result', isError: false };
    expect(toolLine(call('read', '{"path":"a b.txt","lines":[1,2]}'), done)).toBe('⚙ read: a b.txt [1,2]');
    expect(toolLine(call('stop', '{}'), done)).toBe('⚙ stop');
    const failed = { text: 'no such file\n  at line 3', isError: true };
    expect(toolLine(call('read', '{"path"'), failed)).toBe('⚠ read: no such file at line 3');
    expect(toolLine(call('shell', `{"command":"${'x'.repeat(500)}"}`), done).length).toBeLessThan(180);
  });

  it('keeps what the agent said beside calls as a line, and the newest lines of many', () => {
    expect(saidLine(' Let me\n look. ')).toBe('💬 Let me look.');
    expect(saidLine(' \n')).toBeUndefined();
    const lines = Array.from({ length: 25 }, (_, index) => `⚙ ${index}`);
    expect(summaryOf(lines)?.text.split('\n')).toEqual(['… (5)', ...lines.slice(5)]);
  });

  it('shows neither calls nor reasoning unless they are asked for', () => {
    const written = { parts: [thinking('Hm.')], lines: ['⚙ read'] };
    expect(leadsOf({}, written)).toEqual([]);
    expect(leadsOf({ verbose: 'off', reasoning: 'off' }, written)).toEqual([]);
    expect(leadsOf({ verbose: 'on', reasoning: 'on' }, written).map(({ text }) => text)).toEqual([
      '⚙ read',
      '💭 Hm.',
    ]);
    expect(leadsOf({ verbose: 'on', reasoning: 'stream' }, { parts: [], lines: [] })).toEqual([]);
  });

  it('quotes reasoning without scaffolding, up to its limit', () => {
    const [lead] = leadsOf({ reasoning: 'on' }, { parts: [thinking(`So. ${'y'.repeat(9_000)}`)], lines: [] });
    expect(lead?.text.length).toBeLessThan(3_100);
    expect(lead?.spans).toEqual([{ kind: 'quote', start: 0, length: lead?.text.length }]);
    expect(quoteNewest('First. '.repeat(200))?.text.length).toBeLessThan(520);
    expect(quoteNewest('  ')).toBeUndefined();
  });

  it('puts reasoning into the first message of the answer if it fits, and in front of it otherwise', () => {
    const [lead] = leadsOf({ reasoning: 'on' }, { parts: [thinking('Hm.')], lines: [] });
    const leads = lead ? [lead] : [];
    const bold = { text: 'Yes', spans: [{ kind: 'bold', start: 0, length: 3 } as const] };
    const [joined, ...rest] = withLeads(leads, [bold], { limits, joins: true });
    expect(joined?.text).toBe('💭 Hm.\n\nYes');
    expect(joined?.spans.at(-1)).toEqual({ kind: 'bold', start: 8, length: 3 });
    expect(rest).toEqual([]);
    const long = { text: 'z'.repeat(200), spans: [] };
    expect(withLeads(leads, [long], { limits, joins: true })).toEqual([...leads, long]);
    expect(withLeads(leads, [bold], { limits, joins: false })).toEqual([...leads, bold]);
  });
});

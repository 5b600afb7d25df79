import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitContext } from '../../src/agent/fit-context.ts';
import { transcriptId } from '../../src/contracts/ids.ts';
import { type AgentMessage, textOf } from '../../src/contracts/message.ts';
import { holds } from '../support/holds.ts';

const say = (role: AgentMessage['role'], text: string, id = text): AgentMessage => ({
  id: transcriptId(id),
  role,
  parts: [{ type: 'text', data: { text } }],
  createdAt: 1,
});
const summaryOf = (text: string): AgentMessage => ({ ...say('user', text, 'summary'), isSummary: true });
/** Fits a context that is larger than its window. */
const cut = (messages: readonly AgentMessage[], window: number) =>
  fitContext(messages, { window, tokens: window + 1 });

describe('fitting a conversation into the window', () => {
  it('leaves a conversation unchanged that fits, by the count or by the estimate', () => {
    const messages = [say('user', 'hi'), say('assistant', 'hello')];
    expect(fitContext(messages, { window: 1, tokens: 1 })).toBe(messages);
    expect(cut(messages, 1000)).toBe(messages);
  });

  it("leaves out the oldest messages, says so, and starts with a person's message", () => {
    const long = 'x'.repeat(300);
    const messages = [
      say('user', long, '1'),
      say('assistant', long, '2'),
      say('user', 'new', '3'),
      say('assistant', 'yes', '4'),
    ];
    const [note, ...rest] = cut(messages, 60);
    expect(note?.role).toBe('system');
    expect(textOf(note?.parts ?? [])).toContain('2 earlier messages');
    expect(rest.map(({ id }) => id)).toEqual(['3', '4']);
    const ids = cut([summaryOf('we'), ...messages], 60).map(({ id }) => id);
    expect(ids).toEqual(['summary', 'left-out', '3', '4']);
  });

  it("sends the newest turn whole even if it doesn't fit", () => {
    const messages = [say('user', 'old'), say('user', 'y'.repeat(900), 'big')];
    expect(cut(messages, 10).at(-1)?.id).toBe('big');
  });

  it('never starts a cut conversation with an answer or a result, and keeps its end and summary', () => {
    const role = fc.constantFrom<AgentMessage['role']>('user', 'assistant', 'tool', 'system');
    const transcripts = fc.array(fc.tuple(role, fc.string({ maxLength: 200 })), {
      minLength: 1,
      maxLength: 30,
    });
    holds(
      fc.property(
        transcripts,
        fc.integer({ min: 1, max: 2000 }),
        fc.boolean(),
        (rows, window, hasSummary) => {
          const summary = hasSummary ? [summaryOf('x'.repeat(window))] : [];
          const own = rows.map(([each, text], index) => say(each, text, String(index)));
          const messages = [...summary, ...own];
          const fitted = cut(messages, window);
          if (fitted === messages) return;
          const shown = fitted.slice(summary.length + 1);
          expect(fitted.slice(0, summary.length)).toEqual(summary);
          expect(shown[0]?.role).toBe('user');
          expect(shown).toEqual(own.slice(own.length - shown.length));
          expect(shown.length).toBeLessThan(own.length);
        },
      ),
      { interruptAfterTimeLimit: 1000, numRuns: 5000 },
    );
  });
});

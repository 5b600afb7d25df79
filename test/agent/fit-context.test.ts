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

describe('fitting a conversation into the window', () => {
  it('leaves a conversation that fits as it is', () => {
    const messages = [say('user', 'hi'), say('assistant', 'hello')];
    expect(fitContext(messages, 1000)).toBe(messages);
  });

  it('leaves out the oldest messages, says so, and begins with a person', () => {
    const long = 'x'.repeat(300);
    const messages = [
      say('user', long, '1'),
      say('assistant', long, '2'),
      say('user', 'new', '3'),
      say('assistant', 'yes', '4'),
    ];
    const [note, ...rest] = fitContext(messages, 60);
    expect(note?.role).toBe('system');
    expect(textOf(note?.parts ?? [])).toContain('2 earlier messages');
    expect(rest.map(({ id }) => id)).toEqual(['3', '4']);
  });

  it('sends the newest turn whole when not even that fits', () => {
    const messages = [say('user', 'old'), say('user', 'y'.repeat(900), 'big')];
    expect(fitContext(messages, 10).at(-1)?.id).toBe('big');
  });

  it('never begins with an answer or a result, and keeps the end of any conversation', () => {
    const role = fc.constantFrom<AgentMessage['role']>('user', 'assistant', 'tool', 'system');
    const transcripts = fc.array(fc.tuple(role, fc.string({ maxLength: 200 })), {
      minLength: 1,
      maxLength: 30,
    });
    holds(
      fc.property(transcripts, fc.integer({ min: 1, max: 2000 }), (rows, maxTokens) => {
        const messages = rows.map(([each, text], index) => say(each, text, String(index)));
        const fitted = fitContext(messages, maxTokens);
        if (fitted === messages) return;
        expect(fitted[1]?.role).toBe('user');
        expect(fitted.slice(1)).toEqual(messages.slice(messages.length - fitted.length + 1));
      }),
      { interruptAfterTimeLimit: 1000, numRuns: 5000 },
    );
  });
});

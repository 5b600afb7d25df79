import { describe, expect, it } from 'vitest';
import { judgeRepeat, withoutSentMedia } from '../../src/replies/dedupe.ts';
import { aRoute, aToolSend } from './reply-builders.ts';

const route = aRoute();
const judge = (finalText: string, ...toolSends: readonly ReturnType<typeof aToolSend>[]) =>
  judgeRepeat(finalText, toolSends, { route });

describe("repeats of a tool's message", () => {
  it('suppresses a final text that repeats what the message tool sent (pitfall 20)', () => {
    const sent = aToolSend({ text: 'The train leaves at 9:40 from platform 3.' });
    expect(judge('The train leaves at 9:40 from platform 3.', sent)).toBe('repeats');
    expect(judge('  the TRAIN leaves at 9:40\nfrom platform 3. 🚆', sent)).toBe('repeats');
    expect(judge('Hi', aToolSend({ text: 'hi' }))).toBe('repeats');
    expect(judge('👍', aToolSend({ text: '👍' }))).toBe('repeats');
  });

  it('suppresses a final text that joins two sends (pitfall 20)', () => {
    expect(
      judge(
        'First part. Second part.',
        aToolSend({ text: 'First part.' }),
        aToolSend({ text: 'Second part.' }),
      ),
    ).toBe('repeats');
  });

  it.each([
    'Sent!',
    'Done.',
    'I’ve sent it.',
    "I've sent the message",
    'OK',
    '✅ Sent',
    'Gesendet.',
    'Enviado',
  ])('suppresses the mere acknowledgement %j (pitfall 20)', (text) => {
    expect(judge(text, aToolSend({ text: 'The train leaves at 9:40.' }))).toBe('acknowledges');
  });

  it.each(['Sent!', 'Done.'])('delivers %j if nothing was sent', (text) => {
    expect(judge(text)).toBe('new');
  });

  it('takes acknowledgements from the configuration', () => {
    const options = { route, acknowledgements: ['Verstuurd'] };
    expect(judgeRepeat('Verstuurd!', [aToolSend({ text: 'x' })], options)).toBe('acknowledges');
    expect(judgeRepeat('Sent!', [aToolSend({ text: 'x' })], options)).toBe('new');
  });

  it('delivers a long answer that quotes a short line that was sent (pitfall 21)', () => {
    const sent = aToolSend({ text: 'Looking into it' });
    expect(judge(`I was looking into it, and found three reasons: ${'because '.repeat(20)}`, sent)).toBe(
      'new',
    );
  });

  it('counts a text as contained from ten characters and half of the longer text on', () => {
    expect(judge('abcdefghij 123456789', aToolSend({ text: 'abcdefghij' }))).toBe('repeats');
    expect(judge('abcdefghij 1234567890', aToolSend({ text: 'abcdefghij' }))).toBe('new');
    expect(judge('abcdefghi 1', aToolSend({ text: 'abcdefghi' }))).toBe('new');
  });

  it('delivers the answer after a send to another conversation or thread (pitfall 22)', () => {
    const elsewhere = aToolSend({ text: 'Hello there, Bob', route: aRoute({ conversation: 'other' }) });
    expect(judge('Hello there, Bob', elsewhere)).toBe('new');
    expect(judge('Sent!', elsewhere)).toBe('new');
    expect(
      judge('Hello there, Bob', aToolSend({ text: 'Hello there, Bob', route: aRoute({ thread: '7' }) })),
    ).toBe('new');
  });

  it.each(['failed', 'unknown'] as const)(
    'delivers the answer after a send that is %s (pitfall 23)',
    (state) => {
      expect(judge('Hello there, Bob', aToolSend({ text: 'Hello there, Bob', state }))).toBe('new');
      expect(judge('Sent!', aToolSend({ text: 'x', state }))).toBe('new');
    },
  );

  it('delivers the answer after a send to another session (pitfall 24)', () => {
    expect(judge('Hello there, Bob', aToolSend({ text: 'Hello there, Bob', tool: 'sessions_send' }))).toBe(
      'new',
    );
  });

  it('removes media that were already sent here, and no others', () => {
    const media = [{ source: '/w/a.png' }, { source: '/w/b.png' }];
    expect(withoutSentMedia(media, [aToolSend({ media: ['/w/a.png'] })], route)).toEqual([
      { source: '/w/b.png' },
    ]);
    expect(withoutSentMedia(media, [aToolSend({ media: ['/w/a.png'], state: 'failed' })], route)).toEqual(
      media,
    );
  });

  it('keeps the last copy of a file that was attached repeatedly', () => {
    const copies = [
      { source: '/w/a.png', path: '1' },
      { source: '/w/b.png', path: '2' },
      { source: '/w/a.png', path: '3' },
    ];
    expect(withoutSentMedia(copies, [], route).map(({ path }) => path)).toEqual(['3', '2']);
  });
});

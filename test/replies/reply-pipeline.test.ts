import { describe, expect, it } from 'vitest';
import { type ReplyPlan, shapeInternalFailure } from '../../src/replies/reply-pipeline.ts';
import { fillText, textsFor } from '../../src/texts/chat-texts.ts';
import { aReply, aRoute, aToolSend, shapeReply } from './reply-builders.ts';

const file = { path: '/w/a.png', mimeType: 'image/png', name: 'a.png' };

function textsOf(plan: ReplyPlan): string[] {
  if (plan.kind !== 'send' && plan.kind !== 'fallback') return [];
  return plan.parts.flatMap(({ content }) => (content.kind === 'text' ? [content.text.text] : []));
}

describe('a reply', () => {
  it('sends an answer as formatted text', () => {
    expect(shapeReply(aReply({ text: 'Hello **you**' }))).toEqual({
      kind: 'send',
      parts: [
        {
          content: {
            kind: 'text',
            text: { text: 'Hello you', spans: [{ kind: 'bold', start: 6, length: 3 }] },
          },
        },
      ],
    });
  });

  it('judges silence after thinking and reply tags are taken out', () => {
    expect(shapeReply(aReply({ text: '<think>NO</think>[[reply_to_current]] NO_REPLY' }))).toEqual({
      kind: 'silent',
    });
  });

  it('pitfall 19: never replaces silence, not even when a tool failed', () => {
    expect(shapeReply(aReply({ text: 'NO_REPLY', toolFailure: { tool: 'shell' } }))).toEqual({
      kind: 'silent',
    });
  });

  it('sends media although the text is silent or repeats what was sent', () => {
    const plan = { kind: 'send', parts: [{ content: { kind: 'media', ...file } }] };
    expect(shapeReply(aReply({ text: 'NO_REPLY', media: [file] }))).toEqual(plan);
    expect(
      shapeReply(aReply({ text: 'Done.', media: [file], toolSends: [aToolSend({ text: 'x' })] })),
    ).toEqual(plan);
  });

  it('does not send media again that the message tool sent', () => {
    const toolSends = [aToolSend({ media: [file.path] })];
    expect(shapeReply(aReply({ text: '', media: [file], toolSends }))).toEqual({
      kind: 'suppressed',
      reason: 'media-sent',
    });
  });

  it('pitfall 20: suppresses an answer that the message tool gave already', () => {
    const toolSends = [aToolSend({ text: 'It is ten o’clock now' })];
    expect(shapeReply(aReply({ text: 'It is ten o’clock now', toolSends }))).toEqual({
      kind: 'suppressed',
      reason: 'repeats',
    });
  });

  it('says in one line that a tool failed when nothing else is left', () => {
    const plan = shapeReply(aReply({ text: '<think>hm</think>', toolFailure: { tool: 'shell' } }));
    expect(plan.kind).toBe('fallback');
    expect(textsOf(plan)).toEqual([fillText(textsFor('en').toolFailure, { tool: 'shell' })]);
  });

  it.each(['', ' \n', '<think>without an end', '\u200b\u2060\u202e', '\u0007', '\ufffd', '&#8203;'])(
    'says that there was no answer for %j, and is not silent',
    (text) => {
      const { answerEmpty, answerCutEmpty } = textsFor('en');
      const plan = shapeReply(aReply({ text }));
      expect(plan).toMatchObject({ kind: 'fallback', why: 'empty answer' });
      expect(textsOf(plan)).toEqual([answerEmpty]);
      expect(textsOf(shapeReply(aReply({ text, isCut: true })))).toEqual([answerCutEmpty]);
      const group = shapeReply(aReply({ text, chatKind: 'group' }));
      expect(group).toMatchObject({ kind: 'fallback', parts: [{ content: { kind: 'reaction' } }] });
    },
  );

  it('says behind a cut text that it was cut', () => {
    const plan = shapeReply(aReply({ text: 'Once upon a', isCut: true }));
    expect(textsOf(plan)).toEqual(['Once upon a', textsFor('en').answerCut]);
    expect(plan).toMatchObject({ isCut: true, parts: [{}, { isNotice: true }] });
  });

  it('says nothing about a failed tool when a person already got something', () => {
    const input = aReply({ text: '', toolFailure: { tool: 'shell' }, toolSends: [aToolSend({ text: 'x' })] });
    expect(shapeReply(input)).toEqual({ kind: 'suppressed', reason: 'already-sent' });
    const elsewhere = [aToolSend({ text: 'x', route: aRoute({ conversation: 'other' }) })];
    expect(shapeReply({ ...input, toolSends: elsewhere }).kind).toBe('fallback');
  });

  it('cuts a long answer to what the network takes', () => {
    const plan = shapeReply(
      aReply({ text: 'word '.repeat(1000), capabilities: { text: { maxLength: 2000 }, canReact: true } }),
    );
    expect(textsOf(plan).map((text) => text.length <= 2000)).toEqual([true, true, true]);
  });

  it.each([
    ['off', [undefined, undefined]],
    ['first', ['41', undefined]],
    ['all', ['41', '41']],
  ] as const)('quotes by replyToMode %s', (replyToMode, expected) => {
    const plan = shapeReply(aReply({ text: `${'a'.repeat(4000)}\n\n${'b'.repeat(4000)}`, replyToMode }));
    expect(plan.kind === 'send' && plan.parts.map((part) => part.replyTo)).toEqual(expected);
  });

  it.each([
    [undefined, [undefined, undefined]],
    [true, ['41', undefined]],
  ] as const)('quotes in the mode queued only if the message is behind: %s', (isBehind, expected) => {
    const text = `${'a'.repeat(4000)}\n\n${'b'.repeat(4000)}`;
    const { route, ...input } = aReply({ text, replyToMode: 'queued' });
    const plan = shapeReply({ ...input, route: route && { ...route, ...(isBehind && { isBehind }) } });
    expect(plan.kind === 'send' && plan.parts.map((part) => part.replyTo)).toEqual(expected);
  });

  it('lets an explicit reply tag win over the mode', () => {
    const target = (text: string, over = {}) => {
      const plan = shapeReply(aReply({ text, ...over }));
      return plan.kind === 'send' && plan.parts[0]?.replyTo;
    };
    expect(target('[[reply_to_current]]Hi')).toBe('41');
    expect(target('[[reply_to:17]]Hi', { replyToMode: 'all' })).toBe('17');
  });
});

describe('shapeInternalFailure', () => {
  it('is a line in a DM, a reaction in a group, a line where reactions are impossible', () => {
    expect(textsOf(shapeInternalFailure(aReply()))).toEqual([textsFor('en').internalFailure]);
    expect(shapeInternalFailure(aReply({ chatKind: 'group' }))).toEqual({
      kind: 'fallback',
      why: 'internal',
      parts: [{ content: { kind: 'reaction', messageId: '41', emoji: '⚠' } }],
    });
    const mute = { text: { maxLength: 100 }, canReact: false };
    expect(
      textsOf(shapeInternalFailure(aReply({ chatKind: 'group', capabilities: mute }), 'Too slow')),
    ).toEqual(['Too slow']);
    expect(textsOf(shapeInternalFailure(aReply({ chatKind: 'group', route: aRoute() })))).toHaveLength(1);
  });
});

describe('textsFor', () => {
  it('takes the language, English for one it does not speak, and the owner’s own words first', () => {
    const texts = textsFor('de-AT', { stopped: 'Aus.' });
    expect(texts.nothingToStop).toBe('Es läuft nichts.');
    expect(texts.stopped).toBe('Aus.');
    expect(textsFor('xx').stopped).toBe('Stopped.');
  });

  it('fills in values and leaves unknown names visible', () => {
    expect(fillText('{a} {b} {toString}', { a: 1 })).toBe('1 {b} {toString}');
  });
});

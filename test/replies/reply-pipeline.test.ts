import { describe, expect, it } from 'vitest';
import { type ReplyPlan, shapeInternalFailure } from '../../src/replies/reply-pipeline.ts';
import { fillText, textsFor } from '../../src/texts/chat-texts.ts';
import { aReply, aRoute, aToolSend, shapeReply } from './reply-builders.ts';

const file = { path: '/w/a.png', source: '/w/a.png', mimeType: 'image/png', name: 'a.png' };

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
          ...{ route: aRoute(), purpose: 'reply' },
          content: {
            kind: 'text',
            text: { text: 'Hello you', spans: [{ kind: 'bold', start: 6, length: 3 }] },
          },
        },
      ],
    });
  });

  it('judges silence after removing thinking and reply tags', () => {
    expect(shapeReply(aReply({ text: '<think>NO</think>[[reply_to_current]] NO_REPLY' }))).toEqual({
      kind: 'silent',
    });
  });

  it('never replaces silence, not even if a tool failed (pitfall 19)', () => {
    expect(shapeReply(aReply({ text: 'NO_REPLY', toolFailure: { tool: 'shell' } }))).toEqual({
      kind: 'silent',
    });
  });

  it('sends media even if the text is silent or repeats what was sent', () => {
    const { source: _, ...sent } = file;
    const content = { kind: 'media', ...sent };
    const plan = { kind: 'send', parts: [{ route: aRoute(), content, purpose: 'reply' }] };
    expect(shapeReply(aReply({ text: 'NO_REPLY', media: [file] }))).toEqual(plan);
    expect(
      shapeReply(aReply({ text: 'Done.', media: [file], toolSends: [aToolSend({ text: 'x' })] })),
    ).toEqual(plan);
  });

  it("doesn't send media again that the message tool sent", () => {
    const toolSends = [aToolSend({ media: [file.source] })];
    expect(shapeReply(aReply({ text: '', media: [file], toolSends }))).toEqual({
      kind: 'suppressed',
      reason: 'media-sent',
    });
  });

  it('suppresses an answer that the message tool gave already (pitfall 20)', () => {
    const toolSends = [aToolSend({ text: 'It is ten o’clock now' })];
    expect(shapeReply(aReply({ text: 'It is ten o’clock now', toolSends }))).toEqual({
      kind: 'suppressed',
      reason: 'repeats',
    });
  });

  it('says in one line that a tool failed if nothing else is left', () => {
    const plan = shapeReply(aReply({ text: '<think>hm</think>', toolFailure: { tool: 'shell' } }));
    expect(plan.kind).toBe('fallback');
    expect(textsOf(plan)).toEqual([fillText(textsFor('en').toolFailure, { tool: 'shell' })]);
  });

  it.each(['', ' \n', '<think>without an end', '\u200b\u2060\u202e', '\u0007', '\ufffd', '&#8203;'])(
    'says that there was no answer for %j instead of staying silent',
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

  it('says after a cut text that it was cut', () => {
    const plan = shapeReply(aReply({ text: 'Once upon a', isCut: true }));
    expect(textsOf(plan)).toEqual(['Once upon a', textsFor('en').answerCut]);
    expect(plan).toMatchObject({ isCut: true, parts: [{ purpose: 'reply' }, { purpose: 'notice' }] });
  });

  it('says nothing about a failed tool if the person already got something', () => {
    const input = aReply({ text: '', toolFailure: { tool: 'shell' }, toolSends: [aToolSend({ text: 'x' })] });
    expect(shapeReply(input)).toEqual({ kind: 'suppressed', reason: 'already-sent' });
    const elsewhere = [aToolSend({ text: 'x', route: aRoute({ conversation: 'other' }) })];
    expect(shapeReply({ ...input, toolSends: elsewhere }).kind).toBe('fallback');
  });

  it("cuts a long answer to the network's message length", () => {
    const plan = shapeReply(
      aReply({ text: 'word '.repeat(1000), capabilities: { text: { maxLength: 2000 }, canReact: true } }),
    );
    expect(textsOf(plan).map((text) => text.length <= 2000)).toEqual([true, true, true]);
  });

  it.each([
    ['off', [undefined, undefined]],
    ['first', ['41', undefined]],
    ['all', ['41', '41']],
  ] as const)('quotes according to replyToMode %s', (replyToMode, expected) => {
    const plan = shapeReply(aReply({ text: `${'a'.repeat(4000)}\n\n${'b'.repeat(4000)}`, replyToMode }));
    expect(plan.kind === 'send' && plan.parts.map(({ route }) => route.replyTo)).toEqual(expected);
  });

  it.each([
    [undefined, [undefined, undefined]],
    [true, ['41', undefined]],
  ] as const)('quotes in mode queued only if the message is late: %s', (isBehind, expected) => {
    const text = `${'a'.repeat(4000)}\n\n${'b'.repeat(4000)}`;
    const { route, ...input } = aReply({ text, replyToMode: 'queued' });
    const plan = shapeReply({ ...input, route: route && { ...route, ...(isBehind && { isBehind }) } });
    expect(plan.kind === 'send' && plan.parts.map(({ route }) => route.replyTo)).toEqual(expected);
  });

  it('prefers an explicit reply tag to the mode', () => {
    const target = (text: string, over = {}) => {
      const plan = shapeReply(aReply({ text, ...over }));
      return plan.kind === 'send' && plan.parts[0]?.route.replyTo;
    };
    expect(target('[[reply_to_current]]Hi')).toBe('41');
    expect(target('[[reply_to:17]]Hi', { replyToMode: 'all' })).toBe('17');
  });
});

describe('the reply to an internal failure', () => {
  it('says that it failed with a line in a DM, a reaction in a group, or a line without reactions', () => {
    expect(textsOf(shapeInternalFailure(aReply()))).toEqual([textsFor('en').internalFailure]);
    expect(shapeInternalFailure(aReply({ chatKind: 'group' }))).toEqual({
      kind: 'fallback',
      why: 'internal',
      parts: [
        {
          ...{ route: aRoute(), purpose: 'notice' },
          content: { kind: 'reaction', messageId: '41', emoji: '⚠' },
        },
      ],
    });
    const mute = { text: { maxLength: 100 }, canReact: false };
    expect(
      textsOf(shapeInternalFailure(aReply({ chatKind: 'group', capabilities: mute }), 'Too slow')),
    ).toEqual(['Too slow']);
    expect(textsOf(shapeInternalFailure(aReply({ chatKind: 'group', route: aRoute() })))).toHaveLength(1);
  });
});

describe('textsFor', () => {
  it("uses the chosen language, English for an unknown one, and the owner's own words first", () => {
    const texts = textsFor('de-AT', { stopped: 'Aus.' });
    expect(texts.nothingToStop).toBe('Es läuft nichts.');
    expect(texts.stopped).toBe('Aus.');
    expect(textsFor('xx').stopped).toBe('Stopped.');
  });

  it('fills in values and leaves unknown names visible', () => {
    expect(fillText('{a} {b} {toString}', { a: 1 })).toBe('1 {b} {toString}');
  });
});

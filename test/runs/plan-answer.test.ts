import { expect, it } from 'vitest';
import { messageId } from '../../src/contracts/ids.ts';
import type { Part } from '../../src/contracts/part.ts';
import type { ReplyToMode } from '../../src/replies/reply-pipeline.ts';
import { planAnswer, type RunActions } from '../../src/runs/plan-answer.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aMessage } from '../agent/support/builders.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aRoute } from '../store/builders.ts';
import { shaping } from '../support/free-loop.ts';

const route = aRoute('here', { replyTo: messageId('41') });
const nothingDone = {
  toolSends: [],
  files: [],
  lines: [],
  toolFailure: undefined,
  suppressAcknowledgements: true,
};

const plan = (text: string, actions: RunActions, over: { readonly replyToMode?: ReplyToMode } = {}) =>
  planAnswer(
    aMessage('assistant', 'a', { type: 'text', data: { text } }),
    {
      run: { target: route, chatKind: 'dm' },
      capabilities: plainCapabilities,
      replyToMode: 'off',
      texts: textsFor('en'),
      ...shaping,
      display: {},
      silence: ['chat'],
      hasSeen: async (id) => id === '17',
      ...over,
    },
    actions,
  );

it.each([
  [true, 'suppressed'],
  [false, 'send'],
])("drops a mere acknowledgement of a tool's message if configured: %s", async (isOn, kind) => {
  const toolSend = {
    tool: 'message',
    state: 'sent',
    route,
    text: 'The train leaves at 9:40.',
    media: [],
  } as const;
  const actions = {
    toolSends: [toolSend],
    files: [],
    lines: [],
    toolFailure: undefined,
    suppressAcknowledgements: isOn,
  };
  expect((await plan('Done!', actions)).kind).toBe(kind);
});

it.each([
  ['[[reply_to:17]]Hi', '17', '17'],
  ['[[reply_to_current]]Hi', '41', '41'],
  ['[[reply_to:999]]Hi', undefined, '41'],
  ['[[reply_to:../17]]Hi', undefined, '41'],
])('quotes a message only if the model has seen it: %s', async (text, whenOff, whenFirst) => {
  const quoted = async (replyToMode: ReplyToMode) => {
    const { kind, parts } = { parts: [], ...(await plan(text, nothingDone, { replyToMode })) };
    expect(kind).toBe('send');
    return parts.map(({ content, route }: Part) => [
      content.kind === 'text' && content.text.text,
      route.replyTo,
    ]);
  };
  expect(await quoted('off')).toEqual([['Hi', whenOff]]);
  expect(await quoted('first')).toEqual([['Hi', whenFirst]]);
});

import { expect, it } from 'vitest';
import { planAnswer } from '../../src/runs/plan-answer.ts';
import { noticesFor } from '../../src/texts/notices.ts';
import { aMessage } from '../agent/support/builders.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aRoute } from '../store/builders.ts';
import { shaping } from '../support/free-loop.ts';

it.each([
  [true, 'suppressed'],
  [false, 'send'],
])('drops a mere acknowledgement of what a tool has sent, if it is to: %s', async (isOn, kind) => {
  const route = aRoute('here');
  const receipt = {
    tool: 'message',
    state: 'sent',
    route,
    text: 'The train leaves at 9:40.',
    media: [],
  } as const;
  const plan = await planAnswer(
    aMessage('assistant', 'a', { type: 'text', data: { text: 'Done!' } }),
    {
      run: { target: route, chatKind: 'dm' },
      capabilities: plainCapabilities,
      replyToMode: 'off',
      notices: noticesFor('en'),
      ...shaping,
      silence: 'chat',
    },
    { receipts: [receipt], toolFailure: undefined, suppressAcknowledgements: isOn },
  );
  expect(plan.kind).toBe(kind);
});

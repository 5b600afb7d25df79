import { expect, it } from 'vitest';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { accountId, channelId, conversationId, eventKey, messageId, peerId } from '#contracts/ids.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { createGate } from '../../src/inbound/gate.ts';
import { propose } from '../../src/inbound/propose.ts';
import { noticesFor } from '../../src/replies/notices.ts';

const gate = createGate(
  loadConfig({ values: { PARLEY_OWNERS: 'net:1' }, unknown: [] }, '/nowhere'),
  noticesFor('en'),
);

/** What the door answers somebody whom it does not let in. */
function noticeFor(said: { sender: string; kind: 'dm' | 'group'; isMention: boolean }) {
  const envelope: InboundEnvelope = {
    eventKey: eventKey('message:1'),
    sentAt: 0,
    route: {
      channel: channelId('net'),
      account: accountId('bot'),
      conversation: conversationId(said.kind === 'dm' ? said.sender : '-100'),
    },
    chat: { kind: said.kind },
    sender: { id: peerId(said.sender), name: 'Someone', isBot: false, isSelf: false },
    event: {
      kind: 'message',
      messageId: messageId('1'),
      text: 'Hello?',
      attachments: [],
      mentionsBot: said.isMention,
      repliesToBot: false,
    },
  };
  const proposed = propose(gate, { envelope, facts: undefined, botName: 'bot', now: 0 });
  if (proposed.kind !== 'proposal' || proposed.proposal.decision.kind !== 'refuse')
    throw new Error(`expected a refusal, not ${JSON.stringify(proposed)}`);
  return proposed.proposal.decision.notice;
}

it('tells a stranger once by which id an owner can let them in', () => {
  const notice = noticeFor({ sender: '2', kind: 'dm', isMention: false });
  expect(notice).toMatchObject({ text: expect.stringMatching(/net:2$/), onceKey: 'net:2:not-allowed' });
});

it('tells an owner once how to have the bot in a group that is not answered', () => {
  const notice = noticeFor({ sender: '1', kind: 'group', isMention: true });
  expect(notice).toMatchObject({
    text: expect.stringContaining('add “net:-100” to access.allowGroups'),
    onceKey: 'net:-100:not-allowed',
  });
});

it.each([
  ['an owner who does not speak to the bot', { sender: '1', isMention: false }],
  ['anybody else', { sender: '2', isMention: true }],
])('says nothing to %s in a group that is not answered', (_name, said) => {
  expect(noticeFor({ kind: 'group', ...said })).toBeUndefined();
});

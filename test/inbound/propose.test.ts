import { expect, it } from 'vitest';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { accountId, channelId, conversationId, eventKey, messageId, peerId } from '#contracts/ids.ts';
import { hashPairingCode } from '../../src/commands/one-time-code.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { createInboundPolicy, type InboundPolicy } from '../../src/inbound/inbound-policy.ts';
import { propose } from '../../src/inbound/propose.ts';
import type { Decision } from '../../src/store/intake/proposal.ts';
import { noLinks } from '../../src/store/links/read-links.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';

const gateOf = (values: Readonly<Record<string, string>>) =>
  createInboundPolicy(
    loadConfig({ values: { PARLEY_OWNERS: 'net:1', ...values }, unknown: [] }, '/nowhere'),
    textsFor('en'),
  );
const allowlist = gateOf({ PARLEY_DM_POLICY: 'allowlist' });

type Said = { readonly sender: string; readonly kind: 'dm' | 'group'; readonly isMention: boolean };

/** Returns intake's decision about a message from a sender without an approval. */
function decide(said: Said, policy: InboundPolicy): Decision {
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
      provenance: 'typed',
      attachments: [],
      mentionsBot: said.isMention,
      repliesToBot: false,
    },
  };
  const proposed = propose(policy, {
    envelope,
    facts: undefined,
    links: noLinks,
    role: 'none',
    linkedRoles: new Map(),
    botName: 'bot',
    now: 0,
  });
  if (proposed.kind !== 'proposal') throw new Error(`expected a proposal, not ${JSON.stringify(proposed)}`);
  return proposed.proposal.decision;
}

/** Returns the notice that intake sends to somebody whom it doesn't let in. */
function noticeFor(said: Said) {
  const decision = decide(said, allowlist);
  if (decision.kind !== 'refuse') throw new Error(`expected a refusal, not ${JSON.stringify(decision)}`);
  return decision.notice;
}

it('draws a new code for every stranger, with the command that approves it', () => {
  const pairing = gateOf({});
  const requests = Array.from({ length: 1000 }, () => {
    const decision = decide({ sender: '2', kind: 'dm', isMention: false }, pairing);
    if (decision.kind !== 'pair') throw new Error(`expected a request, not ${JSON.stringify(decision)}`);
    return decision.request;
  });
  const codes = requests.map(({ code }) => code);
  for (const { code, ...request } of requests) {
    expect(code).toMatch(/^[ABCDEFGHJKLMNPQRSTUVWXYZ23456789]{8}$/);
    expect(request).toMatchObject({
      ref: 'net:2',
      codeHash: hashPairingCode(code),
      command: `./bin/parley.mjs pair approve ${code}`,
      validMs: 3_600_000,
      maxPending: 3,
      owners: ['net:1'],
      kept: { content: { text: 'Hello?' }, eventKey: 'message:1', messageId: '1' },
    });
  }
  expect(new Set(codes).size).toBe(codes.length);
});

it('tells a stranger once by which id an owner can let them in', () => {
  const notice = noticeFor({ sender: '2', kind: 'dm', isMention: false });
  expect(notice).toMatchObject({ text: expect.stringMatching(/net:2$/), onceKey: 'net:2:not-allowed' });
});

it("asks an owner who mentions the bot in a group that isn't enabled whether to answer there", () => {
  const decision = decide({ sender: '1', kind: 'group', isMention: true }, allowlist);
  expect(decision).toMatchObject({ kind: 'ask-group', request: { route: { conversation: '-100' } } });
});

it.each([
  ["an owner who doesn't address the bot", { sender: '1', isMention: false }],
  ['anybody else', { sender: '2', isMention: true }],
])("says nothing to %s in a group that isn't enabled", (_name, said) => {
  expect(noticeFor({ kind: 'group', ...said })).toBeUndefined();
});

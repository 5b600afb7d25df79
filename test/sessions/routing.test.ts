import { describe, expect, it } from 'vitest';
import { accountId, agentId, channelId, conversationId, peerId } from '#contracts/ids.ts';
import { type AgentBinding, agentFor, type Routed } from '../../src/sessions/routing.ts';

const channel = channelId('net');
const account = accountId('77');
const general = agentId('main');

const bindings: readonly AgentBinding[] = [
  { agent: 'of-channel', channel },
  { agent: 'of-account', channel, account },
  { agent: 'of-parent', channel, parent: 'guild' },
  { agent: 'of-group', channel, conversation: '-100' },
  { agent: 'of-peer', channel, peer: peerId('12') },
];

function anEvent(
  changes: { kind?: 'dm' | 'group'; in?: string; from?: string; parent?: string } = {},
): Routed {
  const { kind = 'dm', from = '99', in: conversation = from, parent } = changes;
  return {
    route: { channel, account, conversation: conversationId(conversation) },
    chat: { kind, ...(parent === undefined ? {} : { parent: conversationId(parent) }) },
    sender: { id: peerId(from) },
  };
}

describe('routing', () => {
  it.each([
    ['of-peer', anEvent({ from: '12' })],
    ['of-group', anEvent({ kind: 'group', in: '-100', parent: 'guild' })],
    ['of-parent', anEvent({ kind: 'group', in: '-200', parent: 'guild' })],
    ['of-account', anEvent()],
    ['of-channel', { ...anEvent(), route: { ...anEvent().route, account: accountId('78') } }],
    ['main', { ...anEvent(), route: { ...anEvent().route, channel: channelId('other') } }],
  ])('picks %s, in whatever order the bindings stand', (agent, event) => {
    expect(agentFor(event, bindings, general)).toBe(agent);
    expect(agentFor(event, bindings.toReversed(), general)).toBe(agent);
  });

  it('does not bind a group to the agent of a person who writes in it', () => {
    expect(agentFor(anEvent({ kind: 'group', in: '-300', from: '12' }), bindings, general)).toBe(
      'of-account',
    );
  });

  it('prefers the binding that names the account between equals, then the first', () => {
    const peer = peerId('12');
    const equals: AgentBinding[] = [
      { agent: 'first', channel, peer },
      { agent: 'second', channel, peer },
      { agent: 'exact', channel, account, peer },
    ];
    expect(agentFor(anEvent({ from: '12' }), equals, general)).toBe('exact');
    expect(agentFor(anEvent({ from: '12' }), equals.slice(0, 2), general)).toBe('first');
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountId, agentId, channelId, conversationId, peerId } from '#contracts/ids.ts';
import type { Binding } from '../../src/config/config.ts';
import { agentFor, type RoutingInput } from '../../src/sessions/session-key-of.ts';
import { holds } from '../support/holds.ts';

const channel = channelId('net');
const account = accountId('77');
const general = agentId('main');

const bindings: readonly Binding[] = [
  { agent: agentId('of-channel'), channel },
  { agent: agentId('of-account'), channel, account },
  { agent: agentId('of-parent'), channel, parent: 'guild' },
  { agent: agentId('of-group'), channel, conversation: '-100' },
  { agent: agentId('of-peer'), channel, peer: peerId('12') },
];

function anEvent(
  changes: { kind?: 'dm' | 'group'; in?: string; from?: string; parent?: string } = {},
): RoutingInput {
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
  ])('picks the agent %s in whatever order the bindings are listed', (agent, event) => {
    expect(agentFor(event, bindings, general)).toBe(agent);
    expect(agentFor(event, bindings.toReversed(), general)).toBe(agent);
  });

  it("doesn't bind a group to the agent of a person who writes in it", () => {
    expect(agentFor(anEvent({ kind: 'group', in: '-300', from: '12' }), bindings, general)).toBe(
      'of-account',
    );
  });

  it('prefers the binding that names the account among equal ones, then the first', () => {
    const peer = peerId('12');
    const equals: Binding[] = [
      { agent: agentId('first'), channel, peer },
      { agent: agentId('second'), channel, peer },
      { agent: agentId('exact'), channel, account, peer },
    ];
    expect(agentFor(anEvent({ from: '12' }), equals, general)).toBe('exact');
    expect(agentFor(anEvent({ from: '12' }), equals.slice(0, 2), general)).toBe('first');
  });

  it('matches an account by its configured name as well as by its id', () => {
    const named: Binding[] = [
      { agent: agentId('of-work'), channel, account: 'work' },
      { agent: agentId('of-id'), channel, account },
    ];
    const elsewhere = { ...anEvent().route, account: accountId('78') };
    expect(agentFor({ ...anEvent(), route: elsewhere, accountName: 'work' }, named, general)).toBe('of-work');
    expect(agentFor({ ...anEvent(), accountName: 'home' }, named, general)).toBe('of-id');
    expect(agentFor({ ...anEvent(), route: elsewhere }, named, general)).toBe('main');
  });

  it('agrees with a reference implementation that narrows the bindings down rank by rank', () => {
    const few = fc.constantFrom('1', '2', '3');
    const maybe = fc.option(few, { nil: undefined });
    const bindingOf = fc.record({
      channel: maybe,
      account: maybe,
      peer: maybe,
      conversation: maybe,
      parent: maybe,
    });
    const eventOf = fc.record({ channel: few, account: few, name: maybe, from: few, in: few, parent: maybe });
    const kind = fc.constantFrom('dm' as const, 'group' as const);
    holds(
      fc.property(fc.array(bindingOf, { maxLength: 8 }), eventOf, kind, (fields, place, chat) => {
        const listed = fields.map((one, index) => ({ agent: agentId(`agent-${index}`), ...defined(one) }));
        const { parent } = place;
        const event: RoutingInput = {
          route: {
            channel: channelId(place.channel),
            account: accountId(place.account),
            conversation: conversationId(place.in),
          },
          chat: { kind: chat, ...(parent === undefined ? {} : { parent: conversationId(parent) }) },
          sender: { id: peerId(place.from) },
          accountName: place.name,
        };
        expect(agentFor(event, listed, general)).toBe(referenceFor(event, listed) ?? 'main');
      }),
      { numRuns: 20_000, interruptAfterTimeLimit: 2_000 },
    );
  });
});

type Fields = Omit<Binding, 'agent'>;

function defined(fields: { readonly [Name in keyof Fields]: string | undefined }): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Follows the wording of the specification, however slow: of all that fit, those that are exact, and so on. */
function referenceFor(event: RoutingInput, listed: readonly Binding[]): string | undefined {
  const { route, chat, sender, accountName } = event;
  let left = listed.filter((binding) => {
    if (binding.channel !== undefined && binding.channel !== route.channel) return false;
    const names: readonly (string | undefined)[] = [route.account, accountName];
    if (binding.account !== undefined && !names.includes(binding.account)) return false;
    if (binding.conversation !== undefined && binding.conversation !== route.conversation) return false;
    if (binding.peer !== undefined && (chat.kind === 'group' || binding.peer !== sender.id)) return false;
    return binding.parent === undefined || (chat.kind === 'group' && binding.parent === chat.parent);
  });
  const ranks: readonly ((binding: Binding) => boolean)[] = [
    ({ peer, conversation }) => peer !== undefined || conversation !== undefined,
    ({ parent }) => parent !== undefined,
    (binding) => binding.account !== undefined,
    (binding) => binding.channel !== undefined,
  ];
  for (const has of ranks) if (left.some(has)) left = left.filter(has);
  return left[0]?.agent;
}

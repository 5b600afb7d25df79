import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountId, agentId, channelId, conversationId, peerId, threadId } from '#contracts/ids.ts';
import { identityLinksFrom } from '../../src/sessions/identities.ts';
import {
  type SessionAddress,
  type SessionKeySettings,
  sessionKeyOf,
} from '../../src/sessions/session-key-of.ts';

type Place = {
  readonly channel: string;
  readonly account: string;
  readonly kind: 'dm' | 'group';
  readonly conversation: string;
  readonly user: string;
  readonly thread?: string | undefined;
};

function anEvent(place: Partial<Place> = {}): SessionAddress {
  const { channel = 'net', account = '77', kind = 'dm', user = '12', conversation = user, thread } = place;
  return {
    route: {
      channel: channelId(channel),
      account: accountId(account),
      conversation: conversationId(conversation),
      ...(thread === undefined ? {} : { thread: threadId(thread) }),
    },
    chat: { kind },
    sender: { id: peerId(user) },
  };
}

function settings(changes: Partial<SessionKeySettings> = {}): SessionKeySettings {
  return {
    agent: agentId('main'),
    dmScope: 'per-account-channel-peer',
    identityLinks: new Map(),
    ...changes,
  };
}

describe('the session key of an event', () => {
  it.each([
    ['per-account-channel-peer', 'main:77:net:dm:12'],
    ['per-channel-peer', 'main:*:net:dm:12'],
    ['per-peer', 'main:*:*:dm:12'],
    ['main', 'main:*:*:dm:*'],
  ] as const)('derives for the DM scope %s the key %s', (dmScope, key) => {
    expect(sessionKeyOf(anEvent(), settings({ dmScope }))).toBe(key);
  });

  it('names a group by its conversation, whatever its senders and the DM scope', () => {
    const everyScope = ['per-account-channel-peer', 'per-channel-peer', 'per-peer', 'main'] as const;
    for (const dmScope of everyScope) {
      for (const user of ['12', '13']) {
        const event = anEvent({ kind: 'group', conversation: '-100', user });
        expect(sessionKeyOf(event, settings({ dmScope }))).toBe('main:77:net:group:-100');
      }
    }
  });

  it('keeps each thread of a group or DM apart', () => {
    const inGroup = anEvent({ kind: 'group', conversation: '-100', thread: '5' });
    expect(sessionKeyOf(inGroup, settings())).toBe('main:77:net:group:-100:thread:5');
    expect(sessionKeyOf(anEvent({ thread: '5' }), settings())).toBe('main:77:net:dm:12:thread:5');
  });

  it('gives the linked accounts of one person one conversation, and nobody else', () => {
    const identityLinks = identityLinksFrom({ alice: ['net:12', 'web:owner'] });
    const key = (place: Partial<Place>) => sessionKeyOf(anEvent(place), settings({ identityLinks }));
    expect(key({ user: '12' })).toBe('main:*:*:dm:alice');
    expect(key({ channel: 'web', account: 'a', user: 'owner' })).toBe('main:*:*:dm:alice');
    expect(key({ channel: 'net', user: 'owner' })).toBe('main:77:net:dm:owner');
    expect(key({ kind: 'group', conversation: '12', user: '12' })).toBe('main:77:net:group:12');
  });

  it('refuses identity links that would merge two people', () => {
    expect(() => identityLinksFrom({ alice: ['net:12'], bob: ['net:12'] })).toThrow(
      'net:12 is listed under "alice" and "bob"',
    );
  });

  it('gives 10,000 different conversations 10,000 different keys', () => {
    const id = fc.oneof(
      fc.nat({ max: 9_999 }).map(String),
      fc.string({
        unit: fc.constantFrom(':', '*', '@', '%', 'dm', 'group', 'thread', '1'),
        minLength: 1,
        maxLength: 4,
      }),
    );
    const place = fc.record({
      channel: fc.constantFrom('telegram', 'web', 'terminal'),
      account: id,
      kind: fc.constantFrom('dm' as const, 'group' as const),
      conversation: id,
      user: id,
      thread: fc.option(id, { nil: undefined }),
    });
    const identityOf = ({ kind, conversation, user, ...rest }: Place) =>
      JSON.stringify([
        rest.channel,
        rest.account,
        kind,
        kind === 'dm' ? user : conversation,
        rest.thread ?? null,
      ]);
    const keys = new Map<string, string>();
    for (const sample of fc.sample(place, { numRuns: 16_000, seed: 17 })) {
      keys.set(identityOf(sample), sessionKeyOf(anEvent(sample), settings()));
    }
    expect(keys.size).toBeGreaterThan(10_000);
    expect(new Set(keys.values()).size).toBe(keys.size);
  });
});

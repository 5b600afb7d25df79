import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountId, agentId, channelId, conversationId, peerId, threadId } from '#contracts/ids.ts';
import {
  type DirectKeyParts,
  formatSessionKey,
  type GroupKeyParts,
  parseSessionKey,
  type SessionKeyParts,
} from '#contracts/session-key.ts';
import { holds } from '../support/holds.ts';
import { isLong } from '../support/long-run.ts';

const budget = (ms: number) => ({
  numRuns: isLong ? 1_000_000 : 200_000,
  interruptAfterTimeLimit: isLong ? 60_000 : ms,
});

/** Ids of the characters that could confuse the codec, and of any others. */
const id = fc.oneof(
  fc.string({
    unit: fc.constantFrom(':', '%', '@', '*', 'a', '2', '5', 'A', '3', '/'),
    minLength: 1,
    maxLength: 8,
  }),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
  fc.constantFrom('*', 'dm', 'group', 'thread', 'sub', 'agent', '%3A', '-100123', ':thread:'),
);
const agent = id.filter((text) => text !== 'agent').map(agentId);
const orAny = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null, freq: 4 });

const direct: fc.Arbitrary<DirectKeyParts> = fc.record({
  kind: fc.constant('direct'),
  agent,
  account: orAny(id.map(accountId)),
  channel: orAny(id.map(channelId)),
  peer: orAny(id.map(peerId)),
});
const group: fc.Arbitrary<GroupKeyParts> = fc.record({
  kind: fc.constant('group'),
  agent,
  account: id.map(accountId),
  channel: id.map(channelId),
  group: id.map(conversationId),
});
const conversation: fc.Arbitrary<SessionKeyParts> = fc.oneof(
  direct,
  group,
  fc.record({
    kind: fc.constant('thread' as const),
    within: fc.oneof(direct, group),
    thread: id.map(threadId),
  }),
);
const children = fc.array(fc.record({ agent, depth: fc.integer({ min: 1, max: 9 }), child: id }), {
  maxLength: 4,
});
/** A conversation, or a sub-agent of one, up to four levels deep. */
const parts: fc.Arbitrary<SessionKeyParts> = fc
  .tuple(conversation, children)
  .map(([root, levels]) =>
    levels.reduce<SessionKeyParts>(
      (parent, level) => ({ kind: 'sub-agent', ...level, parent: formatSessionKey(parent) }),
      root,
    ),
  );

const main = agentId('main');
const aDirect: DirectKeyParts = {
  kind: 'direct',
  agent: main,
  account: accountId('77'),
  channel: channelId('net'),
  peer: peerId('12'),
};
const aGroup: GroupKeyParts = {
  kind: 'group',
  agent: main,
  account: accountId('77'),
  channel: channelId('net'),
  group: conversationId('-100'),
};

describe('the session key', () => {
  it('writes keys as specified', () => {
    const thread = { kind: 'thread', within: aGroup, thread: threadId('5') } as const;
    const child = { kind: 'sub-agent', agent: main, depth: 1, child: 'c1' } as const;
    const childKey = formatSessionKey({ ...child, parent: formatSessionKey(thread) });
    expect([
      formatSessionKey(aDirect),
      formatSessionKey(aGroup),
      formatSessionKey(thread),
      formatSessionKey({ kind: 'thread', within: aDirect, thread: threadId('5') }),
      formatSessionKey({ ...aDirect, account: null, channel: null, peer: null }),
      childKey,
      formatSessionKey({ ...child, depth: 2, child: 'c2', parent: childKey }),
    ]).toEqual([
      'main:77:net:dm:12',
      'main:77:net:group:-100',
      'main:77:net:group:-100:thread:5',
      'main:77:net:dm:12:thread:5',
      'main:*:*:dm:*',
      'agent:main:sub:1:c1@main:77:net:group:-100:thread:5',
      'agent:main:sub:2:c2@agent:main:sub:1:c1@main:77:net:group:-100:thread:5',
    ]);
  });

  it('keeps a literal star apart from the wildcard', () => {
    const literal = formatSessionKey({ ...aDirect, peer: peerId('*') });
    expect(literal).toBe('main:77:net:dm:%2A');
    expect(parseSessionKey(literal)).toEqual({ ...aDirect, peer: '*' });
    expect(parseSessionKey('main:77:net:dm:*')).toEqual({ ...aDirect, peer: null });
  });

  it('reads back every value it wrote, nested sub-agents included', () => {
    holds(
      fc.property(parts, (value) => {
        expect(parseSessionKey(formatSessionKey(value))).toEqual(value);
      }),
      budget(1500),
    );
  });

  it('never gives two different values one key', () => {
    const seen = new Map<string, string>();
    holds(
      fc.property(parts, (value) => {
        const key = formatSessionKey(value);
        const identity = JSON.stringify(value);
        expect(seen.get(key) ?? identity).toBe(identity);
        seen.set(key, identity);
      }),
      isLong ? budget(800) : { numRuns: 3_000 },
    );
    expect(seen.size).toBeGreaterThan(500);
  });

  it('writes whatever parses back unchanged, so that each conversation has one spelling', () => {
    const keyish = fc.oneof(
      parts.map(formatSessionKey),
      fc
        .tuple(
          parts.map(formatSessionKey),
          fc.nat(),
          fc.constantFrom(':', '%', '@', '*', '%3a', '%41', '%', '', 'x'),
        )
        .map(([key, at, piece]) => {
          const cut = at % (key.length + 1);
          return key.slice(0, cut) + piece + key.slice(cut + (at % 3));
        }),
      fc
        .array(
          fc.constantFrom('main', 'agent', '*', 'dm', 'group', 'thread', 'sub', '1', '%3A', '%3a', '', 'x@y'),
        )
        .map((all) => all.join(':')),
    );
    holds(
      fc.property(keyish, (text) => {
        const value = parseSessionKey(text);
        if (value !== undefined) expect(formatSessionKey(value)).toBe(text);
      }),
      budget(1500),
    );
  });

  it.each([
    '',
    'main',
    'main:77:net:dm:',
    'main::net:dm:12',
    'main:77:net:chat:12',
    'main:*:net:group:1',
    'main:77:net:group:*',
    'main:77:net:dm:12:thread:*',
    'main:77:net:dm:12:thread:',
    'main:77:net:dm:12:topic:5',
    'main:77:net:dm:12:thread:5:thread:6',
    'main:77:net:dm:1%32',
    'main:77:net:dm:a%3ab',
    'main:77:net:dm:a*b',
    'agent:77:net:dm:12',
    'agent:agent:sub:1:c@main:77:net:dm:12',
    'agent:main:sub:0:c@main:77:net:dm:12',
    'agent:main:sub:01:c@main:77:net:dm:12',
    'agent:main:sub:1:@main:77:net:dm:12',
    'agent:main:sub:1:c@',
    'agent:main:sub:1:c@agent:main:sub:1:c@nothing',
    'agent:main:sub:1:main:77:net:dm:12',
  ])('rejects %j as a session key', (text) => {
    expect(parseSessionKey(text)).toBeUndefined();
  });

  it('refuses ids that no conversation can have', () => {
    expect(() => formatSessionKey({ ...aDirect, peer: peerId('') })).toThrow('an empty id');
    expect(() => formatSessionKey({ ...aDirect, agent: agentId('agent') })).toThrow('reserved');
    const parent = formatSessionKey(aDirect);
    const child = { kind: 'sub-agent', agent: main, child: 'c', parent } as const;
    expect(() => formatSessionKey({ ...child, depth: 0 })).toThrow('depth');
    expect(() => formatSessionKey({ ...child, depth: 1.5 })).toThrow('depth');
    expect(() => formatSessionKey({ ...child, depth: 1, parent: 'nonsense' as typeof parent })).toThrow(
      'parent key',
    );
  });

  it('parses a hostile key nested 10,000 deep at once', () => {
    const hostile = `${'agent:a:sub:1:c@'.repeat(10_000)}main:77:net:dm:12`;
    expect(parseSessionKey(hostile)?.kind).toBe('sub-agent');
    expect(parseSessionKey(hostile.slice(0, -2))).toBeUndefined();
  });
});

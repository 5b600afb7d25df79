import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InboundEnvelope, InboundEvent } from '#contracts/envelope.ts';
import { accountId, channelId, conversationId, eventKey, messageId, peerId } from '#contracts/ids.ts';
import {
  type AccessDecision,
  type AccessPolicy,
  type AccessRequest,
  accessPolicyFrom,
  authorityOf,
  authorize,
} from '../../src/inbound/authorize.ts';
import type { SenderRole } from '../../src/store/access/sender-roles.ts';
import { isLong } from '../support/long-run.ts';

const id = messageId('m1');

/** One event of every kind; the record's type turns a kind that is new in the contract into a compile error here. */
const events: { readonly [Kind in InboundEvent['kind']]: Extract<InboundEvent, { kind: Kind }> } = {
  message: {
    kind: 'message',
    messageId: id,
    text: 'hi',
    provenance: 'typed',
    attachments: [],
    mentionsBot: true,
    repliesToBot: true,
  },
  edit: { kind: 'edit', messageId: id, text: 'hi', provenance: 'typed' },
  delete: { kind: 'delete', messageId: id },
  act: { kind: 'act', messageId: messageId('1'), act: 'pinned' },
  reaction: { kind: 'reaction', messageId: id, emoji: '👍', isRemoved: false },
  button: { kind: 'button', messageId: id, data: 'x' },
  stop: { kind: 'stop' },
  migrated: { kind: 'migrated', to: conversationId('-1009') },
  membership: { kind: 'membership', isMember: true },
  unsupported: { kind: 'unsupported', name: 'poll' },
};
const eventKinds = Object.keys(events) as readonly InboundEvent['kind'][];
const platformKinds: readonly string[] = ['migrated', 'membership'];

const senders = {
  owner: '1',
  'allowed in DMs': '2',
  'member of the group': '3',
  stranger: '4',
  approved: '7',
  'approved as owner': '8',
  bot: '5',
  self: '6',
};
type SenderState = keyof typeof senders;
const standings: { readonly [State in SenderState]?: SenderRole } = {
  approved: 'user',
  'approved as owner': 'owner',
  // Whatever their rows say, approval applies neither to bots nor to the account itself.
  bot: 'user',
  self: 'owner',
};
const senderStates = Object.keys(senders) as readonly SenderState[];

/** In `listed` everyone is answered, in `limited` its listed members; `unlisted` is on no list. */
const groups = { listed: '-1', limited: '-2', unlisted: '-3' };
const chats = ['dm', 'listed', 'limited', 'unlisted'] as const;
type ChatState = (typeof chats)[number];

function aPolicy(changes: Partial<Pick<AccessPolicy, 'dmPolicy' | 'groupPolicy'>> = {}): AccessPolicy {
  return accessPolicyFrom({
    owners: ['net:1'],
    access: {
      dmPolicy: 'pairing',
      groupPolicy: 'allowlist',
      allowFrom: ['net:2'],
      allowGroups: ['net:-1'],
      groups: { 'net:-2': { allowFrom: ['net:3'] } },
      ...changes,
    },
  });
}

type Judged = InboundEnvelope & { readonly role: SenderRole };

function anEnvelope(kind: InboundEvent['kind'], sender: SenderState, chat: ChatState): Judged {
  return {
    eventKey: eventKey('k'),
    sentAt: 0,
    route: {
      channel: channelId('net'),
      account: accountId('77'),
      conversation: conversationId(chat === 'dm' ? senders[sender] : groups[chat]),
    },
    chat: { kind: chat === 'dm' ? 'dm' : 'group' },
    sender: {
      id: peerId(senders[sender]),
      name: 'The Owner',
      isBot: sender === 'bot',
      isSelf: sender === 'self',
      isAdmin: true,
    },
    event: events[kind],
    role: standings[sender] ?? 'none',
  };
}

/** The right answers, written independently of the code as a list of who is let in. Everybody else isn't. */
function expectedAuthority(
  policy: string,
  kind: InboundEvent['kind'],
  sender: SenderState,
  chat: ChatState,
): string | undefined {
  if (kind === 'unsupported') return undefined;
  const isPlatform = platformKinds.includes(kind);
  // What the platform reports is no person's text; in a direct conversation it counts as the sender's.
  const isOwner = sender === 'owner' || sender === 'approved as owner' || sender === 'self';
  if (!isPlatform && (sender === 'bot' || sender === 'self')) return undefined;
  if (chat === 'dm') {
    if (isOwner) return 'owner';
    if (policy === 'disabled') return undefined;
    if (sender === 'allowed in DMs') return 'member';
    if (policy === 'pairing' && (sender === 'approved' || sender === 'bot')) return 'member';
    return policy === 'open' ? 'guest' : undefined;
  }
  const isAnswered = policy === 'open' || (policy === 'allowlist' && chat !== 'unlisted');
  if (!isAnswered) return undefined;
  if (isPlatform) return 'guest';
  if (isOwner) return 'owner';
  if (chat === 'limited') return sender === 'member of the group' ? 'member' : undefined;
  return 'guest';
}

const grantedBy = (access: AccessDecision) => (access.kind === 'allowed' ? access.authority : undefined);

describe('authorize (threat 1)', () => {
  for (const chat of chats) {
    const policies =
      chat === 'dm' ? ['pairing', 'allowlist', 'open', 'disabled'] : ['allowlist', 'open', 'disabled'];
    for (const policy of policies) {
      it(`decides every event kind and sender as listed: ${chat} chat, policy ${policy}`, () => {
        const policyData = aPolicy(
          chat === 'dm'
            ? { dmPolicy: policy as AccessPolicy['dmPolicy'] }
            : { groupPolicy: policy as AccessPolicy['groupPolicy'] },
        );
        const cell = (kind: InboundEvent['kind'], sender: SenderState) => `${kind} of ${sender}`;
        const actual: Record<string, string | undefined> = {};
        const expected: Record<string, string | undefined> = {};
        for (const kind of eventKinds) {
          for (const sender of senderStates) {
            actual[cell(kind, sender)] = grantedBy(authorize(anEnvelope(kind, sender, chat), policyData));
            expected[cell(kind, sender)] = expectedAuthority(policy, kind, sender, chat);
          }
        }
        expect(actual).toEqual(expected);
      });
    }
  }

  it.each([
    ['dm-not-paired', 'stranger', 'dm', {}],
    ['dm-not-allowed', 'stranger', 'dm', { dmPolicy: 'allowlist' }],
    ['dm-not-allowed', 'approved', 'dm', { dmPolicy: 'allowlist' }],
    ['dm-disabled', 'approved', 'dm', { dmPolicy: 'disabled' }],
    ['dm-disabled', 'stranger', 'dm', { dmPolicy: 'disabled' }],
    ['group-not-allowed', 'owner', 'unlisted', {}],
    ['group-disabled', 'owner', 'listed', { groupPolicy: 'disabled' }],
    ['sender-not-allowed', 'stranger', 'limited', {}],
    ['own-message', 'self', 'dm', {}],
    ['bot-message', 'bot', 'listed', {}],
  ] as const)('returns %s for a message of %s in %s', (reason, sender, chat, policy) => {
    expect(authorize(anEnvelope('message', sender, chat), aPolicy(policy))).toMatchObject({ reason });
  });

  it('never counts an approval for direct messages in a group (pitfall 53)', () => {
    for (const sender of ['allowed in DMs', 'approved'] as const) {
      for (const chat of ['unlisted', 'limited'] as const)
        expect(authorize(anEnvelope('message', sender, chat), aPolicy()).kind).toBe('refused');
    }
  });

  it.each(['', 'Open', 'everyone', '__proto__', undefined])(
    'denies everyone under the unknown policy %j',
    (unknown) => {
      // A caller that failed to parse its configuration must not let everybody in.
      const broken = { ...aPolicy(), dmPolicy: unknown, groupPolicy: unknown } as unknown as AccessPolicy;
      for (const kind of eventKinds) {
        for (const sender of senderStates) {
          for (const chat of chats) {
            expect(authorize(anEnvelope(kind, sender, chat), broken).kind).not.toBe('allowed');
          }
        }
      }
    },
  );

  it('denies an unknown event kind', () => {
    const strange = { ...anEnvelope('message', 'owner', 'dm'), event: { kind: 'channel_post' } };
    expect(authorize(strange as unknown as AccessRequest, aPolicy({ dmPolicy: 'open' }))).toEqual({
      kind: 'refused',
      reason: 'unsupported-event',
    });
  });

  it('admits nobody without an id, even if a list contains an empty one', () => {
    const policy: AccessPolicy = {
      ...aPolicy({ dmPolicy: 'open', groupPolicy: 'open' }),
      owners: new Set(['net:']),
      allowFrom: new Set(['net:']),
    };
    for (const chat of ['dm', 'listed'] as const) {
      const envelope = anEnvelope('message', 'stranger', chat);
      const nobody = { ...envelope, sender: { ...envelope.sender, id: peerId('') } };
      for (const role of ['none', 'user', 'owner'] as const)
        expect(authorize({ ...nobody, role }, policy).kind).toBe('refused');
    }
  });

  it('applies the list of a guild to its channels', () => {
    const policy = accessPolicyFrom({
      owners: [],
      access: {
        dmPolicy: 'pairing',
        groupPolicy: 'allowlist',
        allowFrom: [],
        allowGroups: [],
        groups: { 'net:guild': { allowFrom: ['net:3'] } },
      },
    });
    const inGuild = (sender: SenderState) => ({
      ...anEnvelope('message', sender, 'unlisted'),
      chat: { kind: 'group' as const, parent: conversationId('guild') },
    });
    expect(authorize(inGuild('member of the group'), policy)).toEqual({
      kind: 'allowed',
      authority: 'member',
    });
    expect(authorize(inGuild('stranger'), policy)).toEqual({ kind: 'refused', reason: 'sender-not-allowed' });
  });

  it('returns the authority that an account would have if it wrote', () => {
    const rights = (ref: string, role?: 'owner' | 'user', dmPolicy: AccessPolicy['dmPolicy'] = 'pairing') =>
      authorityOf(ref, aPolicy({ dmPolicy }), role);
    expect([rights('net:1'), rights('net:2'), rights('net:9')]).toEqual(['owner', 'member', 'guest']);
    expect([rights('net:9', 'owner'), rights('net:9', 'user')]).toEqual(['owner', 'member']);
    expect(rights('net:9', 'user', 'open')).toBe('guest');
  });

  /** Decides as the forbidden policy would: it trusts names, as other gateways did. */
  function authoriseByName(envelope: Judged, ownerNames: ReadonlySet<string>): AccessDecision['kind'] {
    return ownerNames.has(envelope.sender.name.trim().toLowerCase())
      ? 'allowed'
      : authorize(envelope, aPolicy()).kind;
  }

  it('admits nobody who only looks like the owner, and a gate that trusts names would be noticed', () => {
    const lookAlike = fc.constantFrom(
      'Ada Owner',
      'ada owner',
      ' Ada Owner ',
      'Ada Owner',
      '@ada',
      'ADA',
      '1',
      'net:1',
      'owner',
    );
    // Ids that resemble the owner's: padded, signed, prefixed, in other digits. None of them is the owner's.
    const foreignId = fc.oneof(
      fc.constantFrom(
        '01',
        '1 ',
        ' 1',
        '+1',
        '1.0',
        '１',
        '1\u200b',
        '1\0',
        'net:1',
        '@1',
        'owner',
        'Ada Owner',
        '11',
      ),
      fc.nat().map((n) => String(n + 100)),
      fc.string({ minLength: 1, maxLength: 6 }).filter((text) => !['1', '2', '3'].includes(text)),
    );
    const imitation = fc
      .record({
        kind: fc.constantFrom(...eventKinds),
        chat: fc.constantFrom('dm' as const, 'limited' as const, 'unlisted' as const),
        sender: foreignId,
        name: lookAlike,
        channel: fc.constantFrom('net', 'other'),
        isAdmin: fc.boolean(),
      })
      // What the platform itself reports about an allowed group is no person's text.
      .filter(({ kind, chat }) => chat !== 'limited' || !platformKinds.includes(kind));
    let allowed = 0;
    let allowedByName = 0;
    for (const { kind, chat, sender, name, channel, isAdmin } of fc.sample(imitation, {
      numRuns: isLong ? 100_000 : 10_000,
      seed: 53,
    })) {
      const base = anEnvelope(kind, 'stranger', chat);
      const envelope: Judged = {
        ...base,
        route: { ...base.route, channel: channelId(channel) },
        sender: { id: peerId(sender), name, isBot: false, isSelf: false, isAdmin },
      };
      if (authorize(envelope, aPolicy()).kind === 'allowed') allowed++;
      if (authoriseByName(envelope, new Set(['ada owner', '@ada'])) === 'allowed') allowedByName++;
    }
    expect(allowed).toBe(0);
    expect(allowedByName).toBeGreaterThan(1000);
  });

  it('reads no name to decide, because its request contains none', () => {
    const seen = new Set<PropertyKey>();
    const watched = (target: object): object =>
      new Proxy(target, {
        get(object, property, receiver) {
          seen.add(property);
          const value = Reflect.get(object, property, receiver);
          return typeof value === 'object' && value !== null ? watched(value) : value;
        },
      });
    for (const kind of eventKinds) {
      for (const chat of chats) {
        authorize(watched(anEnvelope(kind, 'stranger', chat)) as Judged, aPolicy());
      }
    }
    expect([...seen].sort()).toEqual(
      [
        'channel',
        'chat',
        'conversation',
        'event',
        'id',
        'isAdmitted',
        'isBot',
        'isSelf',
        'kind',
        'parent',
        'route',
        'sender',
        'role',
      ].sort(),
    );
  });
});

import type { InboundEnvelope } from '../../src/contracts/envelope.ts';
import { accountId, channelId, conversationId, eventKey, peerId } from '../../src/contracts/ids.ts';
import { type EventName, eventNames, eventOf } from './access-events.ts';

export const networks = ['telegram', 'discord', 'signal'] as const;
export type DmPolicy = 'pairing' | 'allowlist' | 'open' | 'disabled';
export type GroupPolicy = 'allowlist' | 'open' | 'disabled';
export type Policies = { readonly dmPolicy: DmPolicy; readonly groupPolicy: GroupPolicy };

export const senders = {
  owner: '1',
  'approved as owner': '2',
  'allowed in DMs': '3',
  approved: '4',
  'member of the group': '5',
  stranger: '6',
  bot: '7',
  self: '8',
} as const;
export type SenderState = keyof typeof senders;

/** `listed` answers everyone, `limited` only its listed members, `unlisted` is on no list, `guild` has a listed one. */
export const groups = { listed: '-1', limited: '-2', unlisted: '-3', guild: '-4' } as const;
export type ChatState = 'dm' | keyof typeof groups;
const chats: readonly ChatState[] = ['dm', 'listed', 'limited', 'unlisted', 'guild'];

export type Cell = {
  readonly event: EventName;
  readonly sender: SenderState;
  readonly chat: ChatState;
};

export type Placed = { readonly cell: Cell; readonly mark: string; readonly envelope: InboundEnvelope };

/** Every event of every sender in every chat, to one bot account. */
export function cellsOf(network: string, bot: string): readonly Placed[] {
  return eventNames.flatMap((event) =>
    (Object.keys(senders) as readonly SenderState[]).flatMap((sender) =>
      chats.map((chat, n) => {
        const mark = `mark-${eventNames.indexOf(event)}-${senders[sender]}-${n};`;
        const cell = { event, sender, chat };
        return { cell, mark, envelope: envelopeOf(cell, { network, bot, mark }) };
      }),
    ),
  );
}

type Place = { readonly network: string; readonly bot: string; readonly mark: string };

export function envelopeOf(
  { event, sender, chat }: Cell,
  { network, bot, mark }: Place,
  over: Partial<InboundEnvelope['sender']> = {},
): InboundEnvelope {
  const id = over.id ?? peerId(senders[sender]);
  return {
    eventKey: eventKey(mark),
    sentAt: 1,
    route: {
      channel: channelId(network),
      account: accountId(bot),
      conversation: conversationId(chat === 'dm' ? id : groups[chat]),
    },
    chat: {
      kind: chat === 'dm' ? 'dm' : 'group',
      ...(chat === 'guild' && { parent: conversationId('guild') }),
    },
    sender: {
      id,
      name: 'The Owner',
      isBot: sender === 'bot',
      isSelf: sender === 'self',
      // Administering a group grants no access either.
      isAdmin: true,
      ...over,
    },
    event: eventOf(event, mark),
  };
}

/** Returns the configuration of these tests, in the form of parley.config.json. */
export function settingsOf({ dmPolicy, groupPolicy }: Policies, network: string) {
  return {
    owners: [`${network}:${senders.owner}`],
    access: {
      dmPolicy,
      groupPolicy,
      allowFrom: [`${network}:${senders['allowed in DMs']}`],
      allowGroups: [`${network}:${groups.listed}`, `${network}:guild`],
      groups: {
        [`${network}:${groups.limited}`]: { allowFrom: [`${network}:${senders['member of the group']}`] },
      },
    },
    rateLimit: { perSenderPerMinute: 100_000 },
  };
}

const platformEvents: readonly EventName[] = ['group becomes another', 'bot is let in', 'bot is removed'];
/** Events by which nobody may cause anything. */
const deniedEvents: readonly EventName[] = ['button', 'poll', 'channel post', 'member joins'];

/** The expected result, written as a list of who is let in, independently of the code. Everything else is denied. */
export function isLetIn({ event, sender, chat }: Cell, { dmPolicy, groupPolicy }: Policies): boolean {
  if (deniedEvents.includes(event)) return false;
  const isPlatform = platformEvents.includes(event);
  if (!isPlatform && (sender === 'bot' || sender === 'self')) return false;
  const isOwner = sender === 'owner' || sender === 'approved as owner';
  if (chat === 'dm') {
    if (isOwner || dmPolicy === 'open') return true;
    if (dmPolicy === 'disabled') return false;
    return sender === 'allowed in DMs' || (sender === 'approved' && dmPolicy === 'pairing');
  }
  const isAnswered = groupPolicy === 'open' || (groupPolicy === 'allowlist' && chat !== 'unlisted');
  if (!isAnswered || isPlatform || isOwner) return isAnswered;
  return chat !== 'limited' || sender === 'member of the group';
}

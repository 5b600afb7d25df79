import type { InboundEvent, InboundMessage } from '../../src/contracts/envelope.ts';
import { conversationId, messageId } from '../../src/contracts/ids.ts';

/** Every kind of event a network emits, in the form in which a channel passes it on. */
export type EventName = keyof typeof makers;

/** `mark` is part of every text of the event, so that anything stored of it can be found. */
export function eventOf(name: EventName, mark: string): InboundEvent {
  return makers[name](mark);
}

const makers = {
  text: (mark: string) => aMessage(mark, {}),
  'text that mentions nobody': (mark) => aMessage(mark, { mentionsBot: false }),
  'voice note': (mark) =>
    aMessage(mark, {
      attachments: [{ kind: 'voice', ref: `file-${mark}`, name: `${mark}.ogg`, sizeBytes: 1 }],
    }),
  'photo without a caption': (mark) =>
    aMessage(mark, { text: '', attachments: [{ kind: 'image', ref: `file-${mark}`, name: `${mark}.png` }] }),
  'part of an album': (mark) => aMessage(mark, { album: mark }),
  'text that goes on': (mark) => aMessage(mark, { mayContinue: true }),
  forward: (mark) => aMessage(mark, { provenance: 'forwarded', forwardedFrom: `The Owner ${mark}` }),
  reply: (mark) =>
    aMessage(mark, {
      repliesToBot: true,
      quote: { messageId: messageId('quoted'), author: 'Parley', text: `quoted ${mark}` },
    }),
  'slash command': (mark) => aMessage(mark, { text: `/status ${mark}` }),
  '/new': (mark) => aMessage(mark, { text: '/new' }),
  '/stop all': (mark) => aMessage(mark, { text: '/stop all' }),
  '/pair approve': (mark) => aMessage(mark, { text: '/pair approve ABCDEFGH' }),
  '/start with a code': (mark) => aMessage(mark, { text: '/start ABCDEFGH' }),
  edit: (mark) => ({ kind: 'edit', messageId: messageId(mark), text: `edited ${mark}`, provenance: 'typed' }),
  delete: (mark) => ({ kind: 'delete', messageId: messageId(mark) }),
  reaction: (mark) => ({ kind: 'reaction', messageId: messageId(mark), emoji: mark, isRemoved: false }),
  'reaction taken back': (mark) => ({
    kind: 'reaction',
    messageId: messageId(mark),
    emoji: mark,
    isRemoved: true,
  }),
  button: (mark) => ({ kind: 'button', messageId: messageId(mark), data: mark }),
  'stop button': () => ({ kind: 'stop' }),
  'group becomes another': (mark) => ({ kind: 'migrated', to: conversationId(`to-${mark}`) }),
  'bot is let in': () => ({ kind: 'membership', isMember: true }),
  'bot is removed': () => ({ kind: 'membership', isMember: false }),
  poll: () => ({ kind: 'unsupported', name: 'poll' }),
  'channel post': () => ({ kind: 'unsupported', name: 'channel_post' }),
  'member joins': () => ({ kind: 'unsupported', name: 'chat_member' }),
} satisfies Record<string, (mark: string) => InboundEvent>;

export const eventNames = Object.keys(makers) as readonly EventName[];

function aMessage(mark: string, over: Partial<InboundMessage>): InboundMessage {
  return {
    kind: 'message',
    messageId: messageId(mark),
    text: `words ${mark}`,
    provenance: 'typed',
    attachments: [],
    mentionsBot: true,
    repliesToBot: false,
    ...over,
  };
}

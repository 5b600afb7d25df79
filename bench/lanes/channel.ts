import { z } from 'zod';
import type { Capabilities } from '../../src/contracts/capabilities.ts';
import type { ChannelDefinition, ChannelEntry, Intake } from '../../src/contracts/channel.ts';
import type { InboundEnvelope } from '../../src/contracts/envelope.ts';
import {
  accountId,
  channelId,
  conversationId,
  eventKey,
  messageId,
  peerId,
} from '../../src/contracts/ids.ts';
import type { Outbound, SendResult } from '../../src/contracts/outbound.ts';
import { conversationOf, type Marked, questionOf } from './message.ts';

/** It uses this network's settings and connection name, but nothing of the network itself. */
const id = channelId('telegram');
const account = accountId('1');

const capabilities: Capabilities = {
  text: { maxLength: 4096 },
  canReact: false,
  canQuote: false,
  canEdit: false,
  canDelete: false,
  canPress: false,
  preview: { dm: 'none', group: 'none' },
  previewIntervalMs: { dm: 1000, group: 1000 },
  isSessionBound: false,
  repeatSafeMs: 0,
};

export type Listener = {
  /** Called when this process receives. */
  onReceiving(intake: Intake): void;
  onSent(text: string): void;
};

/** A network inside the process, on which every message arrives immediately. */
export function inProcessChannel({ onReceiving, onSent }: Listener): ChannelEntry {
  let sent = 0;
  const send = async ({ content, route }: Outbound): Promise<SendResult> => {
    if (content.kind !== 'text') throw new Error(`nobody sends ${content.kind} here`);
    onSent(content.text.text);
    sent += 1;
    // The platform numbers the messages of a chat, into which two processes may send.
    return { kind: 'sent', receipts: [messageId(`${route.conversation}-${process.pid}-${sent}`)] };
  };
  const definition: ChannelDefinition<unknown> = {
    id,
    capabilities,
    configSchema: z.unknown(),
    create: () => ({
      identify: async () => ({ id: account, name: 'bench' }),
      start: async (intake) => onReceiving(intake),
      stop: async () => undefined,
      send,
    }),
  };
  return { id, load: async () => definition };
}

/** Makes a message in a direct chat, as mapped from a platform's event. `from` makes its id unique in this database. */
export function envelopeOf(marked: Marked, from: string): InboundEnvelope {
  const chat = conversationOf(marked.lane);
  const message = messageId(`${chat}-${from}-${marked.number}`);
  return {
    eventKey: eventKey(`message:${message}`),
    sentAt: Math.floor(marked.at),
    route: { channel: id, account, conversation: conversationId(chat), replyTo: message },
    chat: { kind: 'dm' },
    sender: { id: peerId(chat), name: 'Ann', isBot: false, isSelf: false },
    event: {
      kind: 'message',
      messageId: message,
      text: questionOf(marked),
      provenance: 'typed',
      attachments: [],
      mentionsBot: false,
      repliesToBot: false,
    },
  };
}

import type { Capabilities } from '#contracts/capabilities.ts';
import type { ChannelAdapter, ChannelDeps } from '#contracts/channel.ts';
import { accountId, type ChannelId, conversationId } from '#contracts/ids.ts';
import { isSameRoute, type ReplyRoute } from '#contracts/route.ts';
import {
  type ClientConnection,
  type ClientConnectionDeps,
  type ClientLink,
  openClientConnection,
} from './client-connection.ts';
import { type clientDelivery, maxFileBytes } from './client-delivery.ts';
import { maxTextLength, type ServerFrame } from './client-frames.ts';
import { sizesOf } from './send-result.ts';

/** Returns the abilities of a channel that serves Parley's own clients. */
export function clientCapabilities(own: Pick<Capabilities, 'canPress'>): Capabilities {
  return {
    text: { maxLength: maxTextLength },
    media: { maxBytes: maxFileBytes },
    caption: { maxLength: maxTextLength },
    canReact: false,
    canQuote: false,
    // Clients read missed messages from the store, where each message stays as it was sent.
    canEdit: false,
    canDelete: false,
    ...own,
    preview: { dm: 'draft', group: 'none' },
    previewIntervalMs: { dm: 60, group: 60 },
    isSessionBound: true,
    // The timeline contains a part under its key, so a repeated send changes nothing.
    repeatSafeMs: Number.MAX_SAFE_INTEGER,
  };
}

/** Returns a function that creates routes to the channel's conversations; its one account has the channel's name. */
export function clientRoutes(channel: ChannelId): (conversation: string) => ReplyRoute {
  const account = accountId(channel);
  return (conversation) => ({ channel, account, conversation: conversationId(conversation) });
}

/** The connected clients, and the half of the adapter that reaches them. Contains no lasting state. */
export type ConnectedClients = Pick<ChannelAdapter, 'send'> &
  Required<Pick<ChannelAdapter, 'preview'>> & {
    /** Serves the client behind this link until the link closes. */
    connect(link: ClientLink, from: Pick<ClientConnectionDeps, 'intake' | 'timeline'>): void;
    /** Asks every client to come back later. */
    closeAll(): void;
  };

/** Creates the set of a channel's clients, initially empty. */
export function createConnectedClients(
  channel: Pick<ChannelDeps, 'clock' | 'log'> &
    Pick<ClientConnectionDeps, 'routeTo' | 'envelopeOf' | 'onStale'> & {
      /** Maps a part to what the channel delivers. */
      readonly planOf: typeof clientDelivery;
    },
): ConnectedClients {
  const { clock, planOf, ...common } = channel;
  const open = new Set<ClientConnection>();
  const push = (route: ReplyRoute, frame: ServerFrame) => {
    for (const connection of open) {
      const at = connection.route();
      if (at !== undefined && isSameRoute(at, route)) connection.push(frame);
    }
  };
  return {
    connect: (link, from) => {
      const connection = openClientConnection({ ...common, clock, link, ...from });
      open.add(connection);
      link.onClose(() => open.delete(connection));
    },
    closeAll: () => {
      for (const connection of open) connection.close();
    },
    send: async (outbound) => {
      const [sizeBytes] = (await sizesOf(outbound.content)) ?? [];
      const plan = planOf(outbound, { at: clock.now(), sizeBytes });
      if (plan.kind === 'deliver') push(outbound.route, plan.frame);
      return plan.result;
    },
    preview: {
      draft: async (route, _draftId, text) => push(route, { type: 'preview', ...text }),
    },
  };
}

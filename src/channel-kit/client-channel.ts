import type { Capabilities } from '#contracts/capabilities.ts';
import type { ChannelAdapter, ChannelDeps } from '#contracts/channel.ts';
import { accountId, type ChannelId, conversationId } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import { isSameRoute, type ReplyRoute } from '#contracts/route.ts';
import {
  type ClientConnection,
  type ClientConnectionDeps,
  type ClientLink,
  openClientConnection,
} from './client-connection.ts';
import type { ClientDelivery } from './client-delivery.ts';
import { maxTextLength, type ServerFrame } from './client-frames.ts';

/** Abilities of a channel that serves clients of Parley's own. */
export function clientCapabilities(own: Pick<Capabilities, 'canPress'>): Capabilities {
  return {
    text: { maxLength: maxTextLength },
    canReact: false,
    canQuote: false,
    // Clients read what they missed from the store, where each message stays as it was sent.
    canEdit: false,
    canDelete: false,
    ...own,
    preview: { dm: 'draft', group: 'none' },
    previewIntervalMs: { dm: 60, group: 60 },
    isSessionBound: true,
    // The timeline holds a part under its key, so a repeated send changes nothing.
    repeatSafeMs: Number.MAX_SAFE_INTEGER,
  };
}

/** Routes to the conversations of such a channel: its one account has the channel's name. */
export function clientRoutes(channel: ChannelId): (conversation: string) => ReplyRoute {
  const account = accountId(channel);
  return (conversation) => ({ channel, account, conversation: conversationId(conversation) });
}

/** The clients that are connected now, and the half of the adapter that reaches them. Holds nothing that lasts. */
export type ConnectedClients = Pick<ChannelAdapter, 'send'> &
  Required<Pick<ChannelAdapter, 'preview'>> & {
    /** Serves the client behind this link until the link closes. */
    connect(link: ClientLink, from: Pick<ClientConnectionDeps, 'intake' | 'timeline'>): void;
    /** Asks every client to come back later. */
    closeAll(): void;
  };

export type ConnectedClientsDeps = Pick<ChannelDeps, 'clock' | 'log'> &
  Pick<ClientConnectionDeps, 'routeTo' | 'envelopeOf' | 'onStale'> & {
    /** The channel's mapping of a part at `at`, ms. */
    planOf(outbound: Outbound, at: number): ClientDelivery;
  };

/** Makes the set of a channel's clients, empty at first. */
export function createConnectedClients(channel: ConnectedClientsDeps): ConnectedClients {
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
      const plan = planOf(outbound, clock.now());
      if (plan.kind === 'deliver') push(outbound.route, plan.frame);
      return plan.result;
    },
    preview: {
      draft: async (route, _draftId, text) => push(route, { type: 'preview', ...text }),
    },
  };
}

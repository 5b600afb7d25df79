import {
  type ClientConnection,
  type ClientLink,
  openClientConnection,
} from '#channel-kit/client-connection.ts';
import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { BotAccount, ChannelAdapter, ChannelDeps, Intake } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import { isSameRoute, type ReplyRoute } from '#contracts/route.ts';
import type { ClientSocket } from '#contracts/route-host.ts';
import { webAccount, webRoute } from './ids.ts';
import { inboundEnvelope } from './inbound.ts';
import { outboundPlan } from './outbound.ts';

const tryAgainLater = 1013;

/** Serves the page's sockets. Holds nothing that lasts: the timeline is where a page catches up. */
export function createWebAdapter(deps: ChannelDeps): ChannelAdapter {
  const open = new Set<ClientConnection>();
  let intake: Intake | undefined;
  let isMounted = false;

  const push = (route: ReplyRoute, frame: ServerFrame) => {
    for (const connection of open) {
      const at = connection.route();
      if (at !== undefined && isSameRoute(at, route)) connection.push(frame);
    }
  };
  const stop = () => {
    intake = undefined;
    for (const connection of open) connection.close();
  };
  const onOpen = (socket: ClientSocket) => {
    if (intake === undefined || deps.timeline === undefined) return socket.close(tryAgainLater, 'not ready');
    const { timeline, clock, log } = deps;
    const link = linkOf(socket);
    const connection = openClientConnection({
      link,
      routeTo: webRoute,
      envelopeOf: inboundEnvelope,
      intake,
      timeline,
      clock,
      log,
      onStale: stop,
    });
    open.add(connection);
    socket.onClose(() => open.delete(connection));
  };

  return {
    identify: async () => identity(deps),
    start: async (door) => {
      intake = door;
      if (!isMounted) deps.routes?.socket('chat', onOpen);
      isMounted = true;
    },
    stop: async () => stop(),
    send: async (outbound) => {
      const plan = outboundPlan(outbound, deps.clock.now());
      if (plan.kind === 'deliver') push(outbound.route, plan.frame);
      return plan.result;
    },
    preview: {
      draft: async (route, _draftId, text) => push(route, { type: 'preview', ...text }),
    },
  };
}

function linkOf(socket: ClientSocket): ClientLink {
  return {
    send: (text) => socket.send(text),
    close: () => socket.close(tryAgainLater, 'try again'),
    onText: (listener) => socket.onMessage(listener),
    onClose: (listener) => socket.onClose(listener),
  };
}

function identity(deps: ChannelDeps): BotAccount {
  if (deps.routes === undefined || deps.timeline === undefined) {
    throw new ParleyError(
      'channel_unavailable',
      'This process serves no page, so the page has no channel here.',
    );
  }
  return { id: webAccount, name: 'the page' };
}

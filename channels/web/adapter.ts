import { join } from 'node:path';
import { createConnectedClients } from '#channel-kit/client-channel.ts';
import type { ClientLink } from '#channel-kit/client-connection.ts';
import type { BotAccount, ChannelAdapter, ChannelDeps, Intake } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import { accountId } from '#contracts/ids.ts';
import type { ClientSocket } from '#contracts/route-host.ts';
import { webChannel, webRoute } from './ids.ts';
import { inboundEnvelope } from './inbound.ts';
import { outboundPlan } from './outbound.ts';
import { createUploads } from './uploads.ts';

const tryAgainLater = 1013;

/** Serves the page's sockets. Keeps no lasting state: a page catches up from the timeline. */
export function createWebAdapter(deps: ChannelDeps): ChannelAdapter {
  let intake: Intake | undefined;
  let isMounted = false;
  const stop = () => {
    intake = undefined;
    clients.closeAll();
  };
  const clients = createConnectedClients({
    clock: deps.clock,
    log: deps.log,
    routeTo: webRoute,
    envelopeOf: inboundEnvelope,
    planOf: outboundPlan,
    onStale: stop,
  });
  const uploads = createUploads({ folder: join(deps.dataDir, 'uploads'), clock: deps.clock });
  const onOpen = (socket: ClientSocket) => {
    const { timeline } = deps;
    if (intake === undefined || timeline === undefined) return socket.close(tryAgainLater, 'not ready');
    clients.connect(linkOf(socket), { intake, timeline });
  };

  return {
    identify: async () => identity(deps),
    start: async (door) => {
      intake = door;
      if (!isMounted) {
        deps.routes?.socket('chat', onOpen);
        // While another process has the account, the message that names the file wouldn't be accepted here either.
        deps.routes?.upload(
          async (file) => (intake === undefined ? { status: 503 } : uploads.take(file)),
          uploads.drop,
        );
      }
      isMounted = true;
    },
    stop: async () => stop(),
    send: clients.send,
    preview: clients.preview,
    media: uploads.media,
  };
}

function linkOf(socket: ClientSocket): ClientLink {
  return {
    send: (text) => socket.send(text),
    close: () => socket.close(tryAgainLater, 'try again'),
    onText: (listener) => socket.onMessage(listener),
    setPaused: (isPaused) => socket.setPaused(isPaused),
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
  return { id: accountId(webChannel), name: 'the page' };
}

import { clientCapabilities } from '#channel-kit/client-channel.ts';

export const webCapabilities = clientCapabilities({
  canPress: true,
  whileAway:
    'The browser keeps unsent messages and sends them when Parley is back; answers are kept in the timeline.',
});

import { clientCapabilities } from '#channel-kit/client-channel.ts';

export const terminalCapabilities = clientCapabilities({
  canPress: false,
  whileAway:
    'The client keeps unsent lines while it runs and sends them when Parley is back; answers are kept in the timeline.',
});

import { clientRoutes } from '#channel-kit/client-channel.ts';
import { channelId } from '#contracts/ids.ts';

export const terminalChannel = channelId('terminal');

/** Each chat is its own conversation; `parley chat` opens `main`. */
export const terminalRoute = clientRoutes(terminalChannel);

import { clientRoutes } from '#channel-kit/client-channel.ts';
import { channelId } from '#contracts/ids.ts';

export const terminalChannel = channelId('terminal');

/** Each chat is a conversation of its own; `parley chat` opens `main`. */
export const terminalRoute = clientRoutes(terminalChannel);

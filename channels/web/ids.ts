import { clientRoutes } from '#channel-kit/client-channel.ts';
import { channelId } from '#contracts/ids.ts';

export const webChannel = channelId('web');

/** Each chat of the page is its own conversation; the page opens `main`. */
export const webRoute = clientRoutes(webChannel);

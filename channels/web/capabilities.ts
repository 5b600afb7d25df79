import { clientCapabilities } from '#channel-kit/client-channel.ts';

export const webCapabilities = clientCapabilities({ canPress: true });

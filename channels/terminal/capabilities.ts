import { clientCapabilities } from '#channel-kit/client-channel.ts';

export const terminalCapabilities = clientCapabilities({ canPress: false });

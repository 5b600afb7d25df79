import { z } from 'zod';

/** Nothing to set: the socket is in the channel's own folder. */
export const terminalConfigSchema = z.object({});

export type TerminalConfig = z.infer<typeof terminalConfigSchema>;

import { z } from 'zod';

/** Nothing to set: the address and the token belong to the server that serves the page. */
export const webConfigSchema = z.object({});

export type WebConfig = z.infer<typeof webConfigSchema>;

import { z } from 'zod';

/** Nothing to set: address and token belong to the server the page comes from. */
export const webConfigSchema = z.object({});

export type WebConfig = z.infer<typeof webConfigSchema>;

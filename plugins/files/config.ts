import { z } from 'zod';

const authority = z.enum(['owner', 'member', 'guest']);

/** Settings of the file tools (`plugins.files`). */
export const filesConfigSchema = z.strictObject({
  enabled: z.boolean().default(true),
  readAuthority: authority
    .default('member')
    .describe('Least trusted person whose messages may cause files to be read or sent.'),
  writeAuthority: authority
    .default('owner')
    .describe('Least trusted person whose messages may cause files to be written.'),
  maxFileBytes: z
    .int()
    .min(1024)
    .max(16_777_216)
    .default(2_097_152)
    .describe('Largest file that can be read or written, in bytes.'),
});

export type FilesConfig = z.output<typeof filesConfigSchema>;

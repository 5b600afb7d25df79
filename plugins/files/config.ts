import { z } from 'zod';

const authority = z.enum(['owner', 'member', 'guest']);

/** Settings of the file tools (`plugins.files`). */
export const filesConfigSchema = z.strictObject({
  enabled: z.boolean().default(true),
  /** The least trusted person whose message may cause a file to be read. */
  readAuthority: authority.default('member'),
  /** The least trusted person whose message may cause a file to be written. */
  writeAuthority: authority.default('owner'),
  /** Largest file that is read or written whole, in bytes. */
  maxFileBytes: z.int().min(1024).max(16_777_216).default(2_097_152),
});

export type FilesConfig = z.output<typeof filesConfigSchema>;

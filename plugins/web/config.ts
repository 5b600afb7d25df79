import { z } from 'zod';

/** Settings of the web tools (`plugins.web`). */
export const webConfigSchema = z.strictObject({
  enabled: z.boolean().default(true),
  authority: z
    .enum(['owner', 'member', 'guest'])
    .default('member')
    .describe('Least trusted person whose messages may cause pages to be read or searched for.'),
  ports: z
    .array(z.int().min(1).max(65_535))
    .min(1)
    .default([80, 443])
    .describe('Ports that web_fetch connects to.'),
  allowHosts: z
    .array(z.string().regex(/^[^\s/@]+:\d{1,5}$/, "isn't host:port, for example 127.0.0.1:8080"))
    .default([])
    .describe(
      'Servers that web_fetch may read although they are on this machine or in its network: exact host:port.',
    ),
  search: z
    .strictObject({
      backend: z.enum(['searxng', 'brave', 'tavily']),
      baseUrl: z.url().exactOptional(),
      keyEnv: z.string().exactOptional(),
    })
    .exactOptional(),
  /** From the environment. */
  searchKey: z.string().exactOptional(),
});

export type WebConfig = z.output<typeof webConfigSchema>;

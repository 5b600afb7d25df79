import { z } from 'zod';

/** Settings of the code search (`plugins.code_search`). */
export const codeSearchConfigSchema = z.strictObject({
  enabled: z.boolean().default(true),
  authority: z
    .enum(['owner', 'member', 'guest'])
    .default('member')
    .describe('Least trusted person whose messages may cause code to be searched.'),
  baseUrl: z
    .url({ protocol: /^https?$/, error: "isn't an http or https address" })
    .default('https://sourcegraph.com')
    .describe('Sourcegraph server that code_search asks, without a token; may be private.'),
});

export type CodeSearchConfig = z.output<typeof codeSearchConfigSchema>;

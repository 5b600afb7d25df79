/** The schema of a plugin from outside: a folder or an installed package that the owner has added. */
import { z } from 'zod';

/** One entry of `plugins` that isn't one of Parley's own. */
export const outsidePlugin = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether the plugin is loaded.'),
  from: z
    .string()
    .min(1)
    .describe('Its folder (./weather, relative to this file, or an absolute path), or an installed package.'),
  digest: z
    .string()
    .regex(/^sha256-[0-9a-f]{64}$/, "isn't a digest as `plugins add` writes it")
    .exactOptional()
    .describe('Digest of its files; `plugins add` and `plugins check` write it.'),
  config: z
    .unknown()
    .optional()
    .describe(
      "Its own settings. A dollar sign and a variable's name in braces stand for its value, for secrets.",
    ),
});

/** Plugins that come with Parley, whose names no other plugin may have. */
export const bundledPlugins: readonly string[] = ['files', 'shell', 'web', 'code_search'];

/** Returns the settings of plugins from outside, by id, unchecked. */
export function outsidePlugins(plugins: object): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(plugins).filter(([id]) => !bundledPlugins.includes(id)));
}

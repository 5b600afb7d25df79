import type { z } from 'zod';
import { configJsonSchema } from '../config/json-schema.ts';
import type { ConfiguredParts } from './config-check.ts';
import type { ExitCode } from './exit-code.ts';

/** Prints the JSON Schema of parley.config.json. */
export async function runConfigSchema({ channels, plugins }: ConfiguredParts): Promise<ExitCode> {
  const schema = configJsonSchema({ channels: await schemasOf(channels), plugins: await schemasOf(plugins) });
  process.stdout.write(`${JSON.stringify(schema, undefined, 2)}\n`);
  return 0;
}

type Part = { readonly id: string; load(): Promise<{ readonly configSchema: z.ZodType }> };

async function schemasOf(parts: readonly Part[]): Promise<Readonly<Record<string, z.ZodType>>> {
  return Object.fromEntries(
    await Promise.all(parts.map(async ({ id, load }) => [id, (await load()).configSchema] as const)),
  );
}

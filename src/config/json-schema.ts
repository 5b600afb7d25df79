import { z } from 'zod';
import { fileSchema } from './schema.ts';

/** The JSON Schema of parley.config.json, for editors and `parley config schema`. */
export function configJsonSchema(): Record<string, unknown> {
  return { title: 'parley.config.json', ...z.toJSONSchema(fileSchema, { io: 'input' }) };
}

/** The JSON Schema of what a part accepts; whatever JSON Schema can't say is left open. */
export function jsonSchemaOf(schema: z.ZodType): Record<string, unknown> {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
}

import { z } from 'zod';
import { fileSchema } from './schema.ts';

/** The JSON Schema of parley.config.json, for editors and `parley config schema`. */
export function configJsonSchema(): Record<string, unknown> {
  return { title: 'parley.config.json', ...z.toJSONSchema(fileSchema, { io: 'input' }) };
}

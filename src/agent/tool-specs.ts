import { type ZodType, z } from 'zod';
import type { ToolSpec } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';

/**
 * The tools as described to the provider. Objects take no other properties, so that a misspelt argument is an
 * error the model can read.
 */
export function toolSpecs(tools: readonly Tool[]): readonly ToolSpec[] {
  return tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema: jsonSchemaOf(inputSchema),
  }));
}

/** Tools are made anew for each run, their schemas are not: each is translated once. */
const translated = new WeakMap<ZodType, Record<string, unknown>>();

function jsonSchemaOf(schema: ZodType): Record<string, unknown> {
  const known = translated.get(schema);
  if (known !== undefined) return known;
  const { $schema: _, ...body } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: closeObject,
  });
  const json = { type: 'object', ...body };
  translated.set(schema, json);
  return json;
}

function closeObject({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.type === 'object' && jsonSchema.additionalProperties === undefined)
    jsonSchema.additionalProperties = false;
}

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

/** Length of the tools' descriptions as JSON, UTF-16 units. Each is written once, since every run asks. */
export function specsLength(tools: readonly Tool[]): number {
  const brackets = 2;
  return tools.reduce((length, tool) => length + specLength(tool) + 1, brackets - 1);
}

type Measured = Pick<Tool, 'name' | 'description'> & { readonly length: number };
const measured = new WeakMap<ZodType, Measured>();

function specLength(tool: Tool): number {
  const { name, description, inputSchema } = tool;
  const known = measured.get(inputSchema);
  if (known?.name === name && known.description === description) return known.length;
  const [spec] = toolSpecs([tool]);
  const { length } = JSON.stringify(spec);
  measured.set(inputSchema, { name, description, length });
  return length;
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

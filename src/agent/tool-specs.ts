import { type ZodType, z } from 'zod';
import type { ToolSpec } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';

/** Describes the tools to the provider. Objects accept no additional properties. */
export function toolSpecs(tools: readonly Tool[]): readonly ToolSpec[] {
  return tools.map((tool) => describe(tool).spec);
}

/** Returns the length of the tools' descriptions as JSON, UTF-16 units. */
export function specsLength(tools: readonly Tool[]): number {
  const brackets = 2;
  return tools.reduce((length, tool) => length + describe(tool).length + 1, brackets - 1);
}

/** Names an argument that the tool doesn't have, if there is one; its schema would drop it silently. */
export function argumentProblem(tool: Tool, given: unknown): string | undefined {
  const { properties, additionalProperties } = describe(tool).spec.inputSchema;
  if (additionalProperties !== false || typeof given !== 'object' || given === null) return undefined;
  const known = Object.keys(properties ?? {});
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return undefined;
  return `unknown argument ${unknown.slice(0, 64)}; the tool takes ${known.join(', ') || 'none'}`;
}

type ToolDescription = { readonly spec: ToolSpec; readonly length: number };

/** Tools are created for each run, but their schemas aren't, so each schema is described only once. */
const described = new WeakMap<ZodType, ToolDescription>();

function describe({ name, description, inputSchema }: Tool): ToolDescription {
  const known = described.get(inputSchema);
  if (known?.spec.name === name && known.spec.description === description) return known;
  const spec = { name, description, inputSchema: jsonSchemaOf(inputSchema) };
  const made = { spec, length: JSON.stringify(spec).length };
  described.set(inputSchema, made);
  return made;
}

function jsonSchemaOf(schema: ZodType): Record<string, unknown> {
  const { $schema: _, ...body } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: closeObject,
  });
  return { type: 'object', ...body };
}

function closeObject({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.type === 'object' && jsonSchema.additionalProperties === undefined)
    jsonSchema.additionalProperties = false;
}

import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import type { ToolSpec } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';

/** Makes the model's view of tools; each tool's schema is written once and kept as long as the tool. */
export function createToolSpecs(): (tool: Tool) => ToolSpec {
  const known = new WeakMap<Tool, ToolSpec>();
  return (tool) => {
    const spec = known.get(tool) ?? toolSpec(tool);
    known.set(tool, spec);
    return spec;
  };
}

/**
 * A tool's name, description and input as JSON Schema. Objects take no other properties, so that a
 * misspelt argument is an error the model can read. Throws ParleyError `internal` where the schema is
 * not an object or has no JSON form (a mistake in the tool).
 */
export function toolSpec(tool: Tool): ToolSpec {
  const { $schema: _, ...schema } = jsonSchema(tool);
  if (schema.type !== 'object') {
    throw new ParleyError('internal', `tool ${tool.name}: the input schema must be an object`);
  }
  return { name: tool.name, description: tool.description, inputSchema: schema };
}

function jsonSchema(tool: Tool): Record<string, unknown> {
  try {
    return z.toJSONSchema(tool.inputSchema, { io: 'input', override: closeObject });
  } catch (cause) {
    throw new ParleyError('internal', `tool ${tool.name}: the input schema has no JSON form`, { cause });
  }
}

function closeObject({ jsonSchema: schema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (schema.type === 'object' && schema.additionalProperties === undefined) {
    schema.additionalProperties = false;
  }
}

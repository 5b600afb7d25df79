import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool } from '#contracts/tool.ts';
import { toolSpecs } from '../../src/agent/prepare-call.ts';

function aTool(inputSchema: z.ZodType) {
  return defineTool({
    name: 'note',
    description: 'Writes a note.',
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: 'owner',
    execute: async () => ({ text: '' }),
  });
}

describe("the model's view of a tool", () => {
  it('describes the input as JSON Schema without additional properties', () => {
    const inputSchema = z.object({
      text: z.string().describe('What to write'),
      tags: z.array(z.object({ name: z.string() })).default([]),
    });
    expect(toolSpecs([aTool(inputSchema)])[0]).toEqual({
      name: 'note',
      description: 'Writes a note.',
      inputSchema: {
        type: 'object',
        properties: {
          text: { type: 'string', description: 'What to write' },
          tags: {
            type: 'array',
            default: [],
            items: {
              type: 'object',
              properties: { name: { type: 'string' } },
              required: ['name'],
              additionalProperties: false,
            },
          },
        },
        required: ['text'],
        additionalProperties: false,
      },
    });
  });

  it('builds the JSON Schema once per schema', () => {
    const schema = z.object({});
    const [one, other] = toolSpecs([aTool(schema), aTool(schema)]);
    expect(one?.inputSchema).toBe(other?.inputSchema);
  });

  it("keeps a record's own rule about additional properties", () => {
    const [spec] = toolSpecs([aTool(z.object({ env: z.record(z.string(), z.string()) }))]);
    expect(spec?.inputSchema).toMatchObject({
      properties: { env: { additionalProperties: { type: 'string' } } },
    });
  });
});

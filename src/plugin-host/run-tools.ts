/** Creates the tools of plugins for a run, and checks what their factories return. */
import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import type { Tool, ToolRun } from '#contracts/tool.ts';
import type { PluginScope, Registration } from './plugin-scope.ts';

/** Creates a plugin's tools for the run. A factory that fails only costs its tool, not the run. */
export function toolsOf(
  { parts, code, withdrawn }: PluginScope,
  run: ToolRun,
  onFault: (registration: Registration, runId: string, error: unknown) => void,
): readonly Tool[] {
  return parts.tools.flatMap((registration) => {
    const { name, factory } = registration;
    try {
      const tool = code.run(() => factory(run));
      if (tool === undefined) return [];
      if (tool.name !== name)
        throw new Error(`its tool is named "${tool.name}", not "${name}" as registered`);
      assertTool(tool);
      return [ownTool(tool, { code, withdrawn })];
    } catch (error) {
      onFault(registration, run.runId, error);
      return [];
    }
  });
}

/** A run keeps the tools that it began with, but none of them is called once its plugin has been withdrawn. */
function ownTool(tool: Tool, { code, withdrawn }: Pick<PluginScope, 'code' | 'withdrawn'>): Tool {
  const { name, description, inputSchema, parallelSafe, replay, authority, approval } = tool;
  const { prepareArguments, describe } = tool;
  return {
    ...{ name, description, inputSchema, parallelSafe, replay, authority },
    ...(approval && { approval }),
    ...(prepareArguments && { prepareArguments: (raw) => code.run(() => prepareArguments.call(tool, raw)) }),
    ...(describe && { describe: (input) => code.run(() => describe.call(tool, input)) }),
    execute: async (input, context) => {
      if (withdrawn.aborted)
        throw new ParleyError(
          'tool_failed',
          `The plugin ${code.owner.plugin} has just been changed or removed. Its new version, if there is one, works from the next message on.`,
        );
      const update = (text: string) => code.leave(() => context.update(text));
      return code.run(async () => tool.execute(input, { ...context, update }));
    },
  };
}

/** Schemas that are known to become JSON Schema, which every request contains. */
const fitSchemas = new WeakSet<object>();

function assertTool({ description, inputSchema, execute, replay, authority }: Tool): void {
  if (typeof description !== 'string' || typeof execute !== 'function')
    throw new Error('it needs a description and a function execute');
  if (!['safe', 'never', 'durable'].includes(replay)) throw new Error('replay is safe, never or durable');
  if (!['owner', 'member', 'guest'].includes(authority))
    throw new Error('authority is owner, member or guest');
  if (typeof inputSchema?.safeParse !== 'function') throw new Error("its inputSchema isn't a zod schema");
  if (fitSchemas.has(inputSchema)) return;
  z.toJSONSchema(inputSchema, { io: 'input' });
  fitSchemas.add(inputSchema);
}

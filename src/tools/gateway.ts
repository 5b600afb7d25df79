import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import type { PluginFinding } from '#contracts/plugin.ts';
import { defineTool, type Tool } from '#contracts/tool.ts';
import { describeReload, type ReloadResult } from '../config/live-settings.ts';

export type GatewayDeps = {
  /** Returns what the page and `parley status` show; it contains no secrets. */
  status(): Promise<GatewayFacts>;
  plugins(): readonly PluginFacts[];
  /** Rereads the configuration, as `parley reload` does; absent in a process that can't. */
  reload?(): Promise<ReloadResult>;
};

type GatewayFacts = {
  readonly version: string;
  readonly startedAt: number;
  readonly model: { readonly name: string; readonly isDemo: boolean };
  readonly channels: readonly { readonly id: string; readonly state: string; readonly detail: string }[];
  readonly problems?: readonly { readonly id: string; readonly text: string }[];
};

type PluginFacts = { readonly plugin: string } & (
  | { readonly kind: 'loaded'; readonly finding?: PluginFinding }
  | { readonly kind: 'failed'; readonly problem: string }
);

const inputSchema = z.object({ action: z.enum(['status', 'reload']) });

/**
 * Creates the tool with which an owner's turn asks how this process is, and has it read its configuration again. A
 * reload that is repeated reads the same file; a file with a problem changes nothing.
 */
export function createGatewayTool(deps: GatewayDeps): Tool {
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'gateway',
    description:
      "Show the gateway's state (status), or have it read its configuration file again after the owner changed it (reload).",
    inputSchema,
    parallelSafe: false,
    replay: 'safe',
    authority: 'owner',
    execute: async ({ action }) => ({
      text: action === 'status' ? statusText(await deps.status(), deps.plugins()) : await reload(deps),
    }),
  });
}

function statusText(
  { version, startedAt, model, channels, problems = [] }: GatewayFacts,
  plugins: readonly PluginFacts[],
): string {
  return [
    `Parley ${version}, running since ${new Date(startedAt).toISOString()}.`,
    `Model: ${model.name}${model.isDemo ? ' (demo)' : ''}.`,
    ...channels.map(
      ({ id, state, detail }) => `Channel ${id}: ${state}${detail === '' ? '' : `, ${detail}`}.`,
    ),
    ...plugins.map((each) => `Plugin ${each.plugin}: ${pluginText(each)}.`),
    ...(problems.length === 0
      ? ['No problems.']
      : problems.map(({ id, text }) => `Problem (${id}): ${text}`)),
  ].join('\n');
}

function pluginText(plugin: PluginFacts): string {
  if (plugin.kind === 'failed') return `failed: ${plugin.problem}`;
  const { result = 'ok', detail = 'loaded', fix } = plugin.finding ?? {};
  return `${result === 'ok' ? '' : `${result}: `}${detail}${fix === undefined ? '' : `; ${fix}`}`;
}

async function reload(deps: GatewayDeps): Promise<string> {
  const result = await deps.reload?.();
  if (result === undefined)
    throw new ParleyError('tool_failed', 'This process cannot reload its configuration.');
  if (result.kind === 'refused')
    throw new ParleyError('tool_failed', `${result.problem}\nNothing was changed.`);
  return describeReload(result).join('\n');
}

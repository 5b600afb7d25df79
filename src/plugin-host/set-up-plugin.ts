/** Sets one plugin up, and ends it. */
import { z } from 'zod';
import type { Log } from '#contracts/log.ts';
import type { Disposer, PluginDefinition } from '#contracts/plugin.ts';
import { isOwnCommand } from '../commands/list.ts';
import type { Containment } from './containment.ts';
import { type Check, messageOf, placeOf } from './plugin-findings.ts';
import type { PluginParts, PluginScope } from './plugin-scope.ts';
import { setupTimeMs, withinSetupTime } from './setup-time.ts';

export type LoadedDefinition = {
  readonly definition: PluginDefinition;
  readonly config: unknown;
  /** It doesn't come with Parley: its log is limited, and what it leaves running is contained. */
  readonly isOutside?: true;
};

/** A plugin that is set up. */
export type LoadedPlugin = PluginScope & {
  readonly entry: LoadedDefinition;
  readonly dispose: Disposer;
  readonly check: Check | undefined;
};
export type SetUpResult = LoadedPlugin | { readonly problem: string };

/** Checks the plugin's configuration against its own schema, then runs its setup. */
export async function setUp(entry: LoadedDefinition, scope: PluginScope): Promise<SetUpResult> {
  const { definition, config } = entry;
  const plugin = definition.id;
  const parsed = parseConfig(definition, config);
  if ('problem' in parsed) return { problem: parsed.problem };
  const { api, code } = scope;
  try {
    const setting = code.run(async () => definition.setup(api, parsed.data));
    const dispose = await withinSetupTime(setting);
    if (dispose === 'late') {
      // Should it end after all, what it has opened is released.
      setting.then((late) => code.run(() => late?.())).catch(() => undefined);
      return { problem: `Plugin "${plugin}" didn't start within ${setupTimeMs / 1000} s.` };
    }
    const check = definition.check && (() => code.run(async () => definition.check?.(api, parsed.data)));
    return { ...scope, entry, dispose: typeof dispose === 'function' ? dispose : () => undefined, check };
  } catch (error) {
    return { problem: `Plugin "${plugin}" didn't start: ${messageOf(error)}${placeOf(error)}` };
  } finally {
    scope.endSetup();
  }
}

/** Parses a plugin's settings with its own schema, which may be wrong itself. */
function parseConfig(
  { id, configSchema }: PluginDefinition,
  config: unknown,
): { readonly data: unknown } | { readonly problem: string } {
  try {
    const { data, error } = configSchema.safeParse(config);
    if (error === undefined) return { data };
    return { problem: `The configuration of plugin "${id}" isn't valid: ${z.prettifyError(error)}` };
  } catch (error) {
    return { problem: `The configuration of plugin "${id}" can't be checked: ${messageOf(error)}` };
  }
}

/** Finds a name that two plugins, or a plugin and Parley, would share. */
export function findConflict(
  { plugin, parts }: PluginScope,
  loaded: readonly LoadedPlugin[],
): string | undefined {
  if (loaded.some((other) => other.plugin === plugin)) return `Plugin "${plugin}" is listed twice.`;
  const kinds = [
    ['Tool', namesOfTools],
    ['Command', namesOfCommands],
    ['Provider', namesOfProviders],
  ] as const;
  for (const [kind, namesIn] of kinds) {
    const owners = new Map(
      loaded.flatMap((other) => namesIn(other.parts).map((name) => [name, other.plugin])),
    );
    for (const name of namesIn(parts)) {
      if (kind === 'Command' && isOwnCommand(name))
        return `Command "${name}" of plugin "${plugin}" is one of Parley's own. Name it otherwise.`;
      const other = owners.get(name);
      if (other !== undefined)
        return `${kind} "${name}" comes from plugin "${other}" and plugin "${plugin}". Turn one of them off.`;
      owners.set(name, plugin);
    }
  }
  return undefined;
}

export const namesOfTools = ({ tools }: PluginParts) => tools.map(({ name }) => name);
const namesOfCommands = ({ commands }: PluginParts) => commands.map(({ name }) => name);
const namesOfProviders = ({ providers }: PluginParts) => providers.map(({ name }) => name);

/** Ends what a plugin has begun. */
export async function endPlugin(
  scope: PluginScope & { readonly dispose?: Disposer },
  { containment, log }: { readonly containment: Containment; readonly log: Log },
): Promise<void> {
  const { plugin, code, dispose } = scope;
  scope.end();
  try {
    await code.run(async () => withinSetupTime(dispose?.()));
  } catch (error) {
    log.error({ plugin, problem: messageOf(error) }, 'plugin.dispose-failed');
  }
  const timers = containment.stopTimers(code.owner);
  if (timers > 0) log.warn({ plugin, timers }, 'plugin.timers-stopped');
}

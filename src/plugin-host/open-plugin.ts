/** Opens one plugin next to the others: its scope, its setup, and the names that it may not share. */
import type { Log } from '#contracts/log.ts';
import type { Containment } from './containment.ts';
import { limitLog } from './limited-log.ts';
import { createOwnCode, createPluginCode } from './plugin-code.ts';
import { createPluginScope, type PluginScope, type ScopeDeps } from './plugin-scope.ts';
import {
  endPlugin,
  findConflict,
  type LoadedDefinition,
  type LoadedPlugin,
  type SetUpResult,
  setUp,
} from './set-up-plugin.ts';

type OpenerDeps = Omit<ScopeDeps, 'code'> & {
  readonly containment: Containment;
  onFault(plugin: string, what: string, error: unknown): void;
  now(): number;
};

/** Returns the functions that open a plugin, of which nothing is in force then, and end one. */
export function createOpener({ log, containment, onFault, now, ...deps }: OpenerDeps) {
  const drop = (one: Parameters<typeof endPlugin>[0]) => endPlugin(one, { containment, log });
  const open = async (entry: LoadedDefinition, others: readonly LoadedPlugin[]): Promise<SetUpResult> => {
    const scope = scopeOf(entry);
    const outcome = await setUp(entry, scope);
    const problem = 'problem' in outcome ? outcome.problem : findConflict(scope, others);
    if (problem === undefined) return outcome;
    await drop('dispose' in outcome ? outcome : scope);
    return { problem };
  };
  const scopeOf = ({ definition, isOutside }: LoadedDefinition): PluginScope => {
    const plugin = definition.id;
    const owner = { plugin, timers: new Set<NodeJS.Timeout>() };
    const own: Log = log.child({ plugin });
    if (!isOutside) return createPluginScope(plugin, { ...deps, log: own, code: createOwnCode(owner) });
    containment.watch();
    const onFlood = () => onFault(plugin, 'its log', 'more than 120 lines in a minute; the rest is dropped');
    const code = createPluginCode(owner, containment);
    return createPluginScope(plugin, { ...deps, log: limitLog(own, now, onFlood), code });
  };
  return { open, drop };
}

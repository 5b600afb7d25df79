/**
 * Chooses which plugins run after a reload: those that a start would load. What hasn't changed keeps running. A channel begins
 * and ends only with Parley, so a plugin that has one waits for a restart.
 */
import { isDeepStrictEqual } from 'node:util';
import type { PluginChange } from '../config/live-settings.ts';
import { findConflict, type LoadedDefinition, type LoadedPlugin, type SetUpResult } from './set-up-plugin.ts';
import { withinSetupTime } from './setup-time.ts';

/**
 * A plugin and its section of the configuration, not yet checked; or one that couldn't be loaded, and why. `waits`: a
 * restart would load it.
 */
export type PluginEntry =
  | LoadedDefinition
  | { readonly plugin: string; readonly problem: string; readonly waits?: true };

/** A plugin that runs from now on, and what has changed. Without `plugin` it doesn't run, without `change` it is as before. */
export type PluginChoice = { readonly plugin?: LoadedPlugin; readonly change?: PluginChange };

type ChoiceDeps = {
  readonly loaded: readonly LoadedPlugin[];
  open(entry: LoadedDefinition, others: readonly LoadedPlugin[]): Promise<SetUpResult>;
  /** Takes a plugin out of force; resolves when it has ended. */
  retire(plugin: LoadedPlugin): Promise<void>;
  /** Ends a plugin that isn't in force. */
  drop(plugin: LoadedPlugin): Promise<void>;
};

/** Sets up what is new or has changed, and returns all plugins in their order. */
export async function choosePlugins(
  entries: readonly PluginEntry[],
  deps: ChoiceDeps,
): Promise<readonly PluginChoice[]> {
  const { loaded } = deps;
  const before = new Map(loaded.flatMap((one) => (one.entry.isOutside ? [[one.plugin, one]] : [])));
  const choices: PluginChoice[] = loaded
    .filter(({ entry }) => !entry.isOutside)
    .map((plugin) => ({ plugin }));
  for (const entry of entries) {
    const others = choices.flatMap(({ plugin }) => plugin ?? []);
    choices.push(await choose(entry, { ...deps, others, before: before.get(idOf(entry)) }));
  }
  const ids = entries.map(idOf);
  const removed = [...before.values()].filter(({ plugin }) => !ids.includes(plugin));
  return [...choices, ...removed.map(remove)];
}

type Situation = ChoiceDeps & {
  readonly others: readonly LoadedPlugin[];
  readonly before: LoadedPlugin | undefined;
};

async function choose(
  entry: PluginEntry,
  { before, others, open, retire, drop }: Situation,
): Promise<PluginChoice> {
  const plugin = idOf(entry);
  const isUnchanged = before !== undefined && isSame(before.entry, entry);
  const conflict = isUnchanged ? findConflict(before, others) : undefined;
  if (isUnchanged && conflict === undefined) return { plugin: before };
  if (before && hasChannel(before))
    return waiting(before, 'problem' in entry ? entry.problem : 'It has changed.');
  if ('problem' in entry) {
    if (before && entry.waits)
      return { plugin: before, change: { plugin, kind: 'waiting', problem: entry.problem } };
    return { change: { plugin, kind: 'failed', problem: entry.problem } };
  }
  if (conflict !== undefined) return { change: { plugin, kind: 'failed', problem: conflict } };
  let opened = await open(entry, others);
  if ('problem' in opened && before !== undefined) {
    // It may need what only one can have, such as a port: another try once the earlier version has ended.
    await withinSetupTime(retire(before));
    opened = await open(entry, others);
  }
  if ('problem' in opened) return { change: { plugin, kind: 'failed', problem: opened.problem } };
  if (!hasChannel(opened)) return { plugin: opened, change: { plugin, kind: 'loaded' } };
  await drop(opened);
  return before
    ? waiting(before, 'It has changed.')
    : { change: { plugin, kind: 'failed', problem: restartFor } };
}

const restartFor = 'It has a channel, which begins and ends only with Parley. Restart Parley.';

function remove(before: LoadedPlugin): PluginChoice {
  if (hasChannel(before)) return waiting(before, 'It was removed.');
  return { change: { plugin: before.plugin, kind: 'removed' } };
}

function waiting(before: LoadedPlugin, reason: string): PluginChoice {
  return {
    plugin: before,
    change: { plugin: before.plugin, kind: 'waiting', problem: `${reason} ${restartFor}` },
  };
}

const hasChannel = ({ parts }: LoadedPlugin) => parts.channels.length > 0;

function isSame(before: LoadedDefinition, entry: PluginEntry): boolean {
  return (
    'definition' in entry &&
    before.definition === entry.definition &&
    isDeepStrictEqual(before.config, entry.config)
  );
}

function idOf(entry: PluginEntry): string {
  return 'problem' in entry ? entry.plugin : entry.definition.id;
}

import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';
import { bundledPlugins } from './plugin-schema.ts';
import { Secret } from './secret.ts';

/** The settings that a running process applies without a restart, including everything under them. */
const live: readonly (keyof Config)[] = [
  'logLevel',
  'allowedHosts',
  'owners',
  'access',
  'rateLimit',
  'bindings',
  'identityLinks',
  'joinMs',
  'reset',
];

/** Settings that are live except for the named parts, which are only read at start. */
const partlyLive: Readonly<Partial<Record<keyof Config, readonly string[]>>> = {
  groups: ['contextLimit'],
  queue: ['waitingNotice'],
  plugins: bundledPlugins,
};

/** Origins of the settings, and values derived from others: a change here has no effect of its own. */
const derived: readonly (keyof Config)[] = [
  'configPath',
  'envFiles',
  'hiddenSettings',
  'variables',
  'mentionMatchers',
];

/** Says whether a reload applies the setting of this path, such as `queue.dm.mode`. */
export function isLive(path: string): boolean {
  const [name = '', part = ''] = path.split(/[.[]/);
  const restarting = new Map(Object.entries(partlyLive)).get(name);
  return restarting === undefined ? live.some((one) => one === name) : !restarting.includes(part);
}

/** A plugin from outside that a reload has changed. `waiting`: the rest happens at the next start. */
export type PluginChange = { readonly plugin: string } & (
  | { readonly kind: 'loaded' | 'removed' }
  | { readonly kind: 'failed' | 'waiting'; readonly problem: string }
);

/** The outcome of reloading the configuration. */
export type ReloadResult =
  | {
      readonly kind: 'applied';
      /** Settings that have taken effect. */
      readonly applied: readonly string[];
      /** Settings that differ from those this process started with and take effect at its next start. */
      readonly needsRestart: readonly string[];
      /** Plugins from outside that have changed, or can't be loaded. */
      readonly plugins: readonly PluginChange[];
    }
  /** Nothing was changed; `problem` lists every mistake and its fix. */
  | { readonly kind: 'refused'; readonly problem: string };

/** Returns what a reload has done, for the owner. */
export function describeReload({
  applied,
  needsRestart,
  plugins,
}: Omit<Extract<ReloadResult, { kind: 'applied' }>, 'kind'>): readonly string[] {
  return [
    ...plugins.map(describePlugin),
    ...(applied.length > 0 ? [`Applied: ${applied.join(', ')}.`] : []),
    ...(applied.length + plugins.length === 0 ? ['Nothing new to apply.'] : []),
    ...(needsRestart.length > 0 ? [`After a restart: ${needsRestart.join(', ')}.`] : []),
  ];
}

function describePlugin(change: PluginChange): string {
  const name = `The plugin ${change.plugin}`;
  switch (change.kind) {
    case 'loaded':
      return `${name} is loaded: the next message can use it.`;
    case 'removed':
      return `${name} has ended.`;
    case 'failed':
      return `${name} is off: ${change.problem.replace(/^It is off: /, '').replace(/^Plugin "[^"]+" didn't/, "it didn't")}`;
    case 'waiting':
      return `${name} keeps running as it was. ${change.problem}`;
    default:
      return change satisfies never;
  }
}

/** Sorts the settings that differ, besides plugins from outside, into those that take effect immediately and those that need a restart. */
export function compareSettings(
  before: Config,
  after: Config,
): Pick<Extract<ReloadResult, { kind: 'applied' }>, 'applied' | 'needsRestart'> {
  const applied: string[] = [];
  const needsRestart: string[] = [];
  // The keys of both, because an optional setting may be in only one of them.
  const names = Object.keys({ ...before, ...after }) as (keyof Config)[];
  for (const name of names) {
    if (derived.includes(name) || isSame(before[name], after[name])) continue;
    if (live.includes(name)) applied.push(name);
    else if (partlyLive[name] === undefined) needsRestart.push(name);
    else sortParts({ name, before, after }, { applied, needsRestart });
  }
  return { applied, needsRestart };
}

type PartlyLive = {
  readonly name: keyof Config;
  readonly before: Config;
  readonly after: Config;
};

function sortParts(
  { name, before, after }: PartlyLive,
  into: { readonly applied: string[]; readonly needsRestart: string[] },
): void {
  const [old, now] = [before[name] as object, after[name] as object];
  for (const part of Object.keys({ ...old, ...now })) {
    if (isSame(Reflect.get(old, part), Reflect.get(now, part))) continue;
    const path = `${name}.${part}`;
    (isLive(path) ? into.applied : into.needsRestart).push(path);
  }
}

/** Compares values; secrets by what they contain. */
function isSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(plain(one), plain(other));
}

function plain(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';
import { Secret } from './secret.ts';

/** The settings that a running process takes over without a restart, all of what lies below them included. */
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

/** Settings whose parts differ: most of each is live, the named rest is read once. */
const partlyLive: Readonly<Partial<Record<keyof Config, readonly string[]>>> = {
  groups: ['contextLimit'],
  queue: ['waitingNotice'],
};

/** Where the settings come from, or what follows from others: nothing of its own changes with them. */
const derived: readonly (keyof Config)[] = [
  'configPath',
  'envFiles',
  'hiddenSettings',
  'variables',
  'mentionMatchers',
];

/** The outcome of reading the configuration anew. */
export type ReloadResult =
  | {
      readonly kind: 'applied';
      /** Settings that hold from now on. */
      readonly applied: readonly string[];
      /** Settings that differ from those this process began with and wait for its next start. */
      readonly needsRestart: readonly string[];
    }
  /** Nothing was changed; `problem` names every mistake and its fix. */
  | { readonly kind: 'refused'; readonly problem: string };

/** Sorts the settings that differ into those that take effect at once and those that need a restart. */
export function compareSettings(
  before: Config,
  after: Config,
): Omit<Extract<ReloadResult, { kind: 'applied' }>, 'kind'> {
  const applied: string[] = [];
  const needsRestart: string[] = [];
  // The keys of both: an optional setting may be in one alone.
  const names = Object.keys({ ...before, ...after }) as (keyof Config)[];
  for (const name of names) {
    if (derived.includes(name) || isSame(before[name], after[name])) continue;
    const restarting = partlyLive[name];
    if (live.includes(name)) applied.push(name);
    else if (restarting === undefined) needsRestart.push(name);
    else sortParts({ name, restarting, before, after }, { applied, needsRestart });
  }
  return { applied, needsRestart };
}

type PartlyLive = {
  readonly name: keyof Config;
  readonly restarting: readonly string[];
  readonly before: Config;
  readonly after: Config;
};

function sortParts(
  { name, restarting, before, after }: PartlyLive,
  into: { readonly applied: string[]; readonly needsRestart: string[] },
): void {
  const [old, now] = [before[name] as object, after[name] as object];
  for (const part of Object.keys({ ...old, ...now })) {
    if (isSame(Reflect.get(old, part), Reflect.get(now, part))) continue;
    (restarting.includes(part) ? into.needsRestart : into.applied).push(`${name}.${part}`);
  }
}

/** Secrets compare by their values. */
function isSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(plain(one), plain(other));
}

function plain(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

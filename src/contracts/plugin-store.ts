/** A plugin's own values. Everything in them is JSON. */

/** A value as it is stored; `version` grows with each change of it. */
export type StoredValue = { readonly key: string; readonly value: unknown; readonly version: number };

/**
 * One change. `version`: the change is only made if the value still has that version, 0 if there is none. Absent: in
 * any case.
 */
export type StoreOp =
  | { readonly kind: 'put'; readonly key: string; readonly value: unknown; readonly version?: number }
  | { readonly kind: 'delete'; readonly key: string; readonly version?: number };

/** The result of a commit: `conflict` names the first key with another version, and nothing was changed. */
export type StoreCommit =
  | { readonly kind: 'committed' }
  | { readonly kind: 'conflict'; readonly key: string }
  /** Nothing was changed; `problem` says which bound would be crossed. */
  | { readonly kind: 'refused'; readonly problem: string };

/** Limits of one plugin: keys of 200 characters, values of 64 kB, 10,000 values and 16 MB, 50 changes per commit. */
export const pluginStoreLimits = {
  keyLength: 200,
  valueBytes: 64 * 1024,
  values: 10_000,
  totalBytes: 16 * 1024 * 1024,
  ops: 50,
} as const;

/** The values of one plugin. No other plugin sees them. */
export interface PluginStore {
  get(key: string): Promise<StoredValue | undefined>;
  /** Returns up to `limit` values (default 100, at most 1,000) whose keys begin so, by key, beginning after `after`. */
  list(
    prefix: string,
    options?: { readonly after?: string; readonly limit?: number },
  ): Promise<readonly StoredValue[]>;
  /** Makes all changes, or none. */
  commit(ops: readonly StoreOp[]): Promise<StoreCommit>;
}

import { migrationNames, onlyAdds } from './migrate.ts';

/** Findings of a check of the database. The check changes nothing. */
export type StoreReport =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'damaged'; readonly reason: string }
  | {
      readonly kind: 'found';
      /** The server's version, or the path of the file. */
      readonly detail: string;
      /** Migrations that the next start will apply. */
      readonly pending: readonly string[];
      /** Migrations of another version of Parley that this one can't work with. */
      readonly unknown: readonly string[];
      /** Findings in its schema that this version can't work with; empty while steps are unknown. */
      readonly misfits: readonly string[];
      /** Models that have refused tools, `provider/model`, and when each last did so, ms since the epoch. */
      readonly withoutTools: ReadonlyMap<string, number>;
    };

/** Finds the models that have refused tools, including those whose alert the owner has dismissed. */
export const toolRefusals = `select subject, max("lastAt") as "at" from "ownerNotices"
  where kind = 'model-without-tools' group by subject`;

/** Compares the schema's steps with those that this version knows. */
export function compareSteps(
  applied: readonly string[],
): Pick<Extract<StoreReport, { kind: 'found' }>, 'pending' | 'unknown'> {
  return {
    pending: migrationNames.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !migrationNames.includes(name) && !onlyAdds(name)),
  };
}

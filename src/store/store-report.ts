import { migrationNames, onlyAdds } from './migrate.ts';

/** Findings of a check of the database. The check changes nothing. */
export type StoreReport =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'damaged'; readonly reason: string }
  | {
      readonly kind: 'found';
      /** The program's version, or where the file is. */
      readonly detail: string;
      /** Steps of the schema that the next start will take. */
      readonly pending: readonly string[];
      /** Steps of another version of Parley that this one can't work with. */
      readonly unknown: readonly string[];
    };

/** Compares the schema's steps with those that this version knows. */
export function compareSteps(
  applied: readonly string[],
): Pick<Extract<StoreReport, { kind: 'found' }>, 'pending' | 'unknown'> {
  return {
    pending: migrationNames.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !migrationNames.includes(name) && !onlyAdds(name)),
  };
}

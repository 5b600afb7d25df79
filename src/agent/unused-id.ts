/**
 * Finds an id that is not taken yet: the wanted one, or with `_2`, `_3` … behind it. It remembers how far it
 * has counted, because some providers call every call the same.
 */
export class UnusedIds {
  readonly #taken: Set<string>;
  readonly #counted = new Map<string, number>();

  /** Ids in use; each id returned is added. */
  constructor(taken: Set<string>) {
    this.#taken = taken;
  }

  take(wanted: string): string {
    let id = wanted;
    let suffix = this.#counted.get(wanted) ?? 1;
    while (this.#taken.has(id)) {
      suffix += 1;
      id = `${wanted}_${suffix}`;
    }
    this.#counted.set(wanted, suffix);
    this.#taken.add(id);
    return id;
  }
}

/**
 * Finds an unused id: the wanted one, or the same with a suffix `_2`, `_3` and so on. It remembers how far it has
 * counted, because some providers give every call the same id.
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

/** The open transaction in which a schema changes. */
export type Alteration = {
  readonly dialect: 'sqlite' | 'postgres';
  run(statement: string): Promise<void>;
};

/** An index of a table. */
export type Index<Column = string> = {
  readonly on: readonly Column[];
  /** In a table of an earlier step, only over columns of this step: the version before must be able to write. */
  readonly isUnique?: true;
  /** The condition of a partial index; base/index-predicates.ts has it in the form that queries use. */
  readonly where?: string;
};

/** A table with its columns, key and indexes. */
export type TableShape<Columns, Column> = {
  readonly columns: Columns;
  readonly key: readonly Column[];
  /**
   * For short rows that are found by their key alone: they are stored in the key's own tree, which saves SQLite one
   * page write per row.
   */
  readonly isUnderKey?: true;
  /**
   * How far PostgreSQL fills the table's pages, %. For rows that are updated only in unindexed columns: the remaining
   * space takes a row's next version, so the indexes stay unchanged.
   */
  readonly fill?: number;
  /** Indexes by name; the names are unique in the database. */
  readonly indexes?: { readonly [name: string]: Index<Column> };
};

/** A table of whichever version. */
export type AnyTable = TableShape<{ readonly [column: string]: string }, string>;

/** Additions of one step, of whichever version. */
export type AnyAdditions = {
  readonly tables?: { readonly [table: string]: AnyTable };
  readonly columns?: { readonly [table: string]: { readonly [column: string]: string } };
  readonly indexes?: { readonly [table: string]: { readonly [name: string]: Index } };
};

/** One step of the schema. */
export type SchemaStep = {
  readonly adds: AnyAdditions;
  /** Fingerprint of the whole schema after this step (`fingerprintOf`); a released step's never changes. */
  readonly fingerprint: string;
  /** Fills what was added, in the same transaction. */
  readonly fill?: (on: Alteration) => Promise<void>;
};

/** Steps by name, in order. */
export type SchemaSteps = { readonly [name: string]: SchemaStep };

/** An index with its name and its table. */
export type NamedIndex = Index & { readonly name: string; readonly table: string };

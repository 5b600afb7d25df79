/** A PostgreSQL of the tests' own. `crash` and `restart`: the server goes and comes back, its files stay. */
export function startPostgres(over?: Readonly<Record<string, string | number>>): Promise<{
  readonly url: string;
  crash(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}>;

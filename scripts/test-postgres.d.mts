/** Starts a PostgreSQL for the tests. `crash` and `restart` end and restart the server; its files stay. */
export function startPostgres(over?: Readonly<Record<string, string | number>>): Promise<{
  readonly url: string;
  crash(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}>;

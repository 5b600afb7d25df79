/** The keys of one provider, and which of them is in use. */
export class KeyRing<Client> {
  readonly #keys: readonly string[];
  readonly #create: (key: string) => Promise<Client>;
  readonly #clients = new Map<string, Client>();
  #index = 0;

  constructor(keys: readonly string[], create: (key: string) => Promise<Client>) {
    this.#keys = keys;
    this.#create = create;
  }

  /**
   * Makes the call with each key in turn until one is not refused for itself; the one that worked last comes
   * first. Throws what the last call threw.
   */
  async call<Answer>(
    send: (client: Client) => Promise<Answer>,
    isAboutKey: (error: unknown) => Promise<boolean>,
  ): Promise<Answer> {
    for (let tried = 1; ; tried += 1) {
      const index = this.#index;
      try {
        return await send(await this.#current());
      } catch (error) {
        if (tried >= this.#keys.length || !(await isAboutKey(error))) throw error;
        // Another call may have moved on from the same key meanwhile.
        if (this.#index === index) this.#index = (index + 1) % this.#keys.length;
      }
    }
  }

  async #current(): Promise<Client> {
    const key = this.#keys[this.#index] ?? '';
    const client = this.#clients.get(key) ?? (await this.#create(key));
    this.#clients.set(key, client);
    return client;
  }
}

import { longestSilenceMs } from '../config/model-schema.ts';
import { type ApiFault, lostConnection } from './api-fault.ts';
import { type ApiAccess, secretsIn } from './provider-options.ts';

type ErrorClass = abstract new (...args: never[]) => Error;

/** A provider's SDK. `Refusal`: its APIError; `Made`: the request, if classifying a fault needs it. */
export type ProviderSdk<Client, Refusal extends Error, Made> = {
  /** Loads the SDK, only when first needed, because it would slow down the gateway's start. */
  load(): Promise<{ readonly APIError: ErrorClass; readonly APIConnectionError: ErrorClass }>;
  create(options: ClientOptions): Promise<Client>;
  /** Classifies an error; any `secrets` that the platform's text repeats are removed. */
  faultOf(refusal: Refusal, secrets: readonly string[], made?: Made): ApiFault;
};

/** Client options that every provider's SDK accepts. */
export type ClientOptions = ReturnType<typeof clientOptions>;

/** One client of an SDK per API key of a provider, and which key is in use. */
export class SdkClients<Client, Refusal extends Error, Made = never> {
  readonly #sdk: ProviderSdk<Client, Refusal, Made>;
  readonly #access: ApiAccess;
  readonly #clients = new Map<string, Client>();
  #index = 0;

  constructor(sdk: ProviderSdk<Client, Refusal, Made>, access: ApiAccess) {
    this.#sdk = sdk;
    this.#access = access;
  }

  /**
   * Makes the call with each key in turn until one isn't refused because of the key itself, starting with the key
   * that last worked. Throws what the last call threw.
   */
  async call<Answer>(send: (client: Client) => Promise<Answer>): Promise<Answer> {
    const { apiKeys } = this.#access;
    for (let tried = 1; ; tried += 1) {
      const index = this.#index;
      try {
        return await send(await this.#current());
      } catch (error) {
        if (tried >= apiKeys.length || (await this.faultIn(error))?.isAboutKey !== true) throw error;
        // Another call may already have moved on from the same key.
        if (this.#index === index) this.#index = (index + 1) % apiKeys.length;
      }
    }
  }

  async load(): Promise<void> {
    await this.#sdk.load();
  }

  /** Returns the failure that the platform or the connection reported; undefined for any other error. */
  async faultIn(error: unknown, made?: Made): Promise<ApiFault | undefined> {
    const { APIConnectionError } = await this.#sdk.load();
    if (error instanceof APIConnectionError) return lostConnection(error);
    const refusal = await this.refusalIn(error);
    return refusal && this.#sdk.faultOf(refusal, secretsIn(this.#access), made);
  }

  /** Returns the error if it is one of the SDK's own. */
  async refusalIn(error: unknown): Promise<Refusal | undefined> {
    const { APIError } = await this.#sdk.load();
    return error instanceof APIError ? (error as Refusal) : undefined;
  }

  async #current(): Promise<Client> {
    const key = this.#access.apiKeys[this.#index] ?? '';
    const client = this.#clients.get(key) ?? (await this.#sdk.create(clientOptions(key, this.#access)));
    this.#clients.set(key, client);
    return client;
  }
}

function clientOptions(apiKey: string, { baseUrl, headers, fetch }: ApiAccess) {
  return {
    apiKey,
    // retry.ts decides.
    maxRetries: 0,
    timeout: longestSilenceMs,
    // Its log would print message bodies.
    logLevel: 'off' as const,
    ...(baseUrl !== undefined && { baseURL: baseUrl }),
    ...(headers && { defaultHeaders: headers }),
    ...(fetch && { fetch }),
  };
}

import { longestSilenceMs } from '../config/model-schema.ts';
import type { ApiFault } from './api-fault.ts';
import { type ApiAccess, labelKey } from './provider-options.ts';

type ErrorClass = abstract new (...args: never[]) => Error;

/** A provider's SDK. */
export type ProviderSdk<Client> = {
  readonly api: 'anthropic' | 'openai';
  /** Loads the SDK, only when first needed, because it would slow down the gateway's start. */
  load(): Promise<{ readonly APIConnectionError: ErrorClass }>;
  create(options: ClientOptions): Promise<Client>;
};

/** Client options that every provider's SDK accepts. */
export type ClientOptions = ReturnType<typeof clientOptions>;

/** Judges an error of a call; undefined: neither the platform nor the connection is to blame. */
export type Judge = (error: unknown, isConnection: boolean) => ApiFault | undefined;

/** One client of an SDK per API key and address of a provider, and which of them are in use. */
export class SdkClients<Client> {
  readonly #sdk: ProviderSdk<Client>;
  readonly #access: ApiAccess;
  readonly #addresses: readonly (string | undefined)[];
  readonly #clients = new Map<string, Client>();
  readonly #accepted = new Set<number>();
  /** Refused since they were last accepted. */
  readonly #refused = new Set<number>();
  #key = 0;
  #address = 0;

  constructor(sdk: ProviderSdk<Client>, access: ApiAccess) {
    this.#sdk = sdk;
    this.#access = access;
    this.#addresses = addressesOf(sdk.api, access.baseUrl);
  }

  /**
   * Makes the call with each key in turn until one isn't refused because of the key itself, starting with the key
   * that last worked; and at each address that may be meant. Throws what the last call threw, or that of a key which
   * works again later.
   */
  async call<Answer>(send: (client: Client) => Promise<Answer>, judge: Judge): Promise<Answer> {
    const { apiKeys } = this.#access;
    let firstMiss: unknown;
    let passing: unknown;
    for (let tried = 1, addresses = 1; ; ) {
      const [key, address] = [this.#key, this.#address];
      try {
        const answer = await send(await this.#client(key, address));
        this.#accept(key);
        return answer;
      } catch (error) {
        const fault = await this.faultIn(error, judge);
        if (fault?.failure.refusal === 'address' && addresses < this.#addresses.length) {
          firstMiss ??= error;
          addresses += 1;
          if (this.#address === address) this.#address = (address + 1) % this.#addresses.length;
          continue;
        }
        if (fault?.failure.refusal === 'address' && firstMiss !== undefined) {
          this.#address = 0;
          throw firstMiss;
        }
        if (fault?.isAboutKey !== true) throw error;
        this.#refuse(key, fault);
        if (fault.failure.retry) passing ??= error;
        if (tried >= apiKeys.length) throw passing ?? error;
        tried += 1;
      }
    }
  }

  /**
   * Moves on from the key of a client whose answer broke off because of the key. Returns false if every key is refused
   * by now.
   */
  moveOn(client: Client, fault: ApiFault): boolean {
    const name = [...this.#clients].find(([, each]) => each === client)?.[0];
    if (name === undefined) return false;
    this.#refuse(Number.parseInt(name, 10), fault);
    return this.#refused.size < this.#access.apiKeys.length;
  }

  async load(): Promise<void> {
    await this.#sdk.load();
  }

  /** Returns the fault that the platform or the connection reported; undefined for any other error. */
  async faultIn(error: unknown, judge: Judge): Promise<ApiFault | undefined> {
    const { APIConnectionError } = await this.#sdk.load();
    return judge(error, error instanceof APIConnectionError);
  }

  #accept(key: number): void {
    this.#refused.delete(key);
    if (this.#accepted.has(key)) return;
    this.#accepted.add(key);
    this.#access.noteKey?.({ ...labelKey(this.#access.apiKeys, key), isRefused: false });
  }

  #refuse(key: number, { failure }: ApiFault): void {
    const { apiKeys } = this.#access;
    const { refusal, detail } = failure;
    this.#refused.add(key);
    // Another call may already have moved on from the same key.
    if (this.#key === key) this.#key = (key + 1) % Math.max(1, apiKeys.length);
    // It works again by itself.
    if (refusal === 'allowance') return;
    this.#accepted.delete(key);
    this.#access.noteKey?.({
      ...labelKey(apiKeys, key),
      isRefused: true,
      isCredit: refusal === 'credit',
      detail,
    });
  }

  async #client(key: number, address: number): Promise<Client> {
    const name = `${key}/${address}`;
    const options = clientOptions(this.#access.apiKeys[key] ?? '', this.#addresses[address], this.#access);
    const client = this.#clients.get(name) ?? (await this.#sdk.create(options));
    this.#clients.set(name, client);
    return client;
  }
}

function clientOptions(apiKey: string, baseUrl: string | undefined, { headers, fetch }: ApiAccess) {
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

/**
 * The connection of one streamed call. Cutting it off costs a new connection, so a complete answer is read to the
 * end of its stream.
 */
export type Connection = {
  readonly signal: AbortSignal;
  /** Call once the answer is complete: aborting the call no longer cuts the stream off. Never rejects. */
  readToEnd(events: AsyncIterator<unknown>): Promise<void>;
  /** Cuts the stream off, unless it is being read to its end. */
  close(): void;
};

/** How long the stream of a complete answer may take to end, ms. */
const lingerMs = 2_000;

/** Opens a connection that follows the signal of the call. */
export function openConnection(call: AbortSignal): Connection {
  const cut = new AbortController();
  const cutOff = () => cut.abort('the call is over');
  const closeQuietly = () => call.removeEventListener('abort', cutOff);
  call.addEventListener('abort', cutOff, { once: true });
  let isWhole = false;
  return {
    signal: cut.signal,
    readToEnd: async (events) => {
      isWhole = true;
      closeQuietly();
      const timer = setTimeout(cutOff, lingerMs).unref();
      try {
        while ((await events.next()).done !== true);
      } catch {
        // How the connection ended after a complete answer doesn't matter.
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => {
      closeQuietly();
      if (!isWhole) cutOff();
    },
  };
}

// Which addresses a configured base URL may mean. People copy it from a server's documents with or without its
// version, or with the path of a call. Pure.

/** Paths of calls, which the SDKs append themselves. */
const callPath = /\/(?:chat\/completions|completions|responses|messages|models|chat)$/;

/** Returns the addresses to try, the likeliest first; `undefined` is the provider's own. */
export function addressesOf(
  api: 'anthropic' | 'openai',
  baseUrl: string | undefined,
): readonly (string | undefined)[] {
  if (baseUrl === undefined) return [undefined];
  const base = withoutCall(baseUrl);
  // Anthropic's SDK appends the version, too.
  if (api === 'anthropic') return [base.replace(/\/v1$/, '')];
  const path = URL.canParse(base) ? new URL(base).pathname : '';
  return /\/v\d|\/openai/.test(path) ? [base] : [base, `${base}/v1`];
}

function withoutCall(baseUrl: string): string {
  const trim = (url: string) => url.replace(/\/{1,8}$/, '');
  return trim(trim(baseUrl.trim()).replace(callPath, ''));
}

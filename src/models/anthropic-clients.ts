import type Anthropic from '@anthropic-ai/sdk';
import type { APIError } from '@anthropic-ai/sdk';
import { type ApiFault, faultOf } from './anthropic-failure.ts';

export type AnthropicAccess = {
  /** Tried in turn on 401, billing and quota errors; the one that worked last comes first. */
  readonly apiKeys: readonly string[];
  /** Default: https://api.anthropic.com */
  readonly baseUrl?: string;
  readonly fetch?: typeof globalThis.fetch;
};

type Sdk = typeof import('@anthropic-ai/sdk');

const HOST = 'https://api.anthropic.com';
/** How long the API may take to begin an answer; silence after that is the loop's to judge. */
const TIMEOUT_MS = 600_000;

/**
 * One SDK client per API key, and which key is in use. The SDK is loaded when it is first needed, because
 * loading it takes 100 ms that the start of the gateway does not have.
 */
export class AnthropicClients {
  readonly #access: AnthropicAccess;
  readonly #clients = new Map<string, Anthropic>();
  #keyIndex = 0;
  #loading: Promise<Sdk> | undefined;

  constructor(access: AnthropicAccess) {
    this.#access = access;
  }

  /** Makes the call with each key in turn until one is not refused for itself. */
  async call<Answer>(send: (client: Anthropic) => Promise<Answer>): Promise<Answer> {
    for (let tried = 1; ; tried += 1) {
      const index = this.#keyIndex;
      try {
        return await send(await this.current());
      } catch (error) {
        const fault = await this.faultIn(error);
        if (fault?.isAboutKey !== true || tried >= this.#access.apiKeys.length) throw error;
        this.#moveOnFrom(index);
      }
    }
  }

  /** The client of the key in use. */
  async current(): Promise<Anthropic> {
    const apiKey = this.#access.apiKeys[this.#keyIndex] ?? '';
    const client = this.#clients.get(apiKey) ?? createClient(await this.#sdk(), apiKey, this.#access);
    this.#clients.set(apiKey, client);
    return client;
  }

  /** The failure reported by the platform or the connection; undefined for any other error. */
  async faultIn(error: unknown): Promise<ApiFault | undefined> {
    const { APIError, APIConnectionError } = await this.#sdk();
    if (error instanceof APIConnectionError) {
      const detail = `no connection: ${causeOf(error)}`;
      return { failure: { kind: 'overloaded', detail, retry: { kind: 'later' } }, isAboutKey: false };
    }
    return error instanceof APIError ? faultOf(error as APIError, this.#access.apiKeys) : undefined;
  }

  /** Another call may have moved on from the same key meanwhile. */
  #moveOnFrom(index: number): void {
    if (this.#keyIndex === index) this.#keyIndex = (index + 1) % this.#access.apiKeys.length;
  }

  #sdk(): Promise<Sdk> {
    this.#loading ??= import('@anthropic-ai/sdk');
    return this.#loading;
  }
}

function createClient({ Anthropic }: Sdk, apiKey: string, { baseUrl, fetch }: AnthropicAccess): Anthropic {
  return new Anthropic({
    apiKey,
    baseURL: baseUrl ?? HOST,
    // retry.ts decides.
    maxRetries: 0,
    timeout: TIMEOUT_MS,
    // Its log would print message bodies, and its tracing would read the environment.
    logLevel: 'off',
    openTelemetry: false,
    ...(fetch === undefined ? {} : { fetch }),
  });
}

/** A system code such as ECONNREFUSED, which a person can look up. */
export function causeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
  }
  return 'no further cause';
}

import type Anthropic from '@anthropic-ai/sdk';
import type { APIError } from '@anthropic-ai/sdk';
import { rememberSuccess } from '#channel-kit/remember-success.ts';
import { hidingVariables } from '../config/environment.ts';
import { longestSilenceMs } from '../config/model-schema.ts';
import { faultOf } from './anthropic-failure.ts';
import { type ApiFault, lostConnection } from './api-fault.ts';
import { KeyRing } from './key-ring.ts';
import { type ApiAccess, secretsIn } from './provider-options.ts';

type Sdk = typeof import('@anthropic-ai/sdk');

/** Anthropic's own server. */
export const anthropicHost = 'https://api.anthropic.com';

/**
 * One SDK client per API key. The SDK is loaded when it is first needed, because loading it takes 100 ms that the
 * start of the gateway does not have.
 */
export class AnthropicClients {
  readonly #access: ApiAccess;
  readonly #ring: KeyRing<Anthropic>;
  readonly #sdk = rememberSuccess(() => import('@anthropic-ai/sdk'));

  constructor(access: ApiAccess) {
    this.#access = access;
    this.#ring = new KeyRing(access.apiKeys, async (key) => createClient(await this.#sdk(), key, access));
  }

  /** Makes the call with each key in turn until one is not refused for itself. */
  async call<Answer>(send: (client: Anthropic) => Promise<Answer>): Promise<Answer> {
    return this.#ring.call(send, async (error) => (await this.faultIn(error))?.isAboutKey === true);
  }

  async load(): Promise<void> {
    await this.#sdk();
  }

  /** The failure reported by the platform or the connection; undefined for any other error. */
  async faultIn(error: unknown): Promise<ApiFault | undefined> {
    const { APIError, APIConnectionError } = await this.#sdk();
    if (error instanceof APIConnectionError) return lostConnection(error);
    return error instanceof APIError ? faultOf(error as APIError, secretsIn(this.#access)) : undefined;
  }
}

function createClient({ Anthropic }: Sdk, apiKey: string, access: ApiAccess): Anthropic {
  const { baseUrl, headers, fetch } = access;
  const options = {
    apiKey,
    baseURL: baseUrl ?? anthropicHost,
    // retry.ts decides.
    maxRetries: 0,
    timeout: longestSilenceMs,
    // Its log would print message bodies.
    logLevel: 'off' as const,
    openTelemetry: false as const,
    ...(headers && { defaultHeaders: headers }),
    ...(fetch === undefined ? {} : { fetch }),
  };
  return hidingVariables('ANTHROPIC_', () => new Anthropic(options));
}

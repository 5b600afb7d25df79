import type OpenAI from 'openai';
import type { APIError } from 'openai';
import { rememberSuccess } from '#channel-kit/remember-success.ts';
import { hidingVariables } from '../../config/environment.ts';
import { longestSilenceMs } from '../../config/model-schema.ts';
import { type ApiFault, lostConnection } from '../api-fault.ts';
import { KeyRing } from '../key-ring.ts';
import { type ApiAccess, secretsIn } from '../provider-options.ts';
import { faultOf, unsupportedIn } from './openai-failure.ts';
import type { OpenAiRequest } from './openai-request.ts';

type Sdk = typeof import('openai');

/** OpenAI's own server. */
export const openAiHost = 'https://api.openai.com/v1';
/** Sent to servers that ask for no key: the SDK insists on one. */
const NO_KEY = 'none';

/** One SDK client per API key. The SDK is loaded when it is first needed: it takes 370 ms and 35 MB. */
export class OpenAiClients {
  readonly #access: ApiAccess;
  readonly #ring: KeyRing<OpenAI>;
  readonly #sdk = rememberSuccess(() => import('openai'));

  constructor(access: ApiAccess) {
    this.#access = access;
    const keys = access.apiKeys.length > 0 ? access.apiKeys : [NO_KEY];
    this.#ring = new KeyRing(keys, async (key) => createClient(await this.#sdk(), key, access));
  }

  /** Makes the call with each key in turn until one is not refused for itself. */
  async call<Answer>(send: (client: OpenAI) => Promise<Answer>): Promise<Answer> {
    return this.#ring.call(send, async (error) => (await this.faultIn(error))?.isAboutKey === true);
  }

  async load(): Promise<void> {
    await this.#sdk();
  }

  /** The failure of a request that the platform or the connection reported; undefined for any other error. */
  async faultIn(error: unknown, made?: OpenAiRequest): Promise<ApiFault | undefined> {
    const { APIError, APIConnectionError } = await this.#sdk();
    if (error instanceof APIConnectionError) return lostConnection(error);
    if (!(error instanceof APIError)) return undefined;
    return faultOf(error as APIError, secretsIn(this.#access), made);
  }

  /** Names the thing in the request that the server does not take, if that was the error. */
  async unsupportedIn(error: unknown, made: OpenAiRequest): Promise<string | undefined> {
    const { APIError } = await this.#sdk();
    return error instanceof APIError ? unsupportedIn(error as APIError, made) : undefined;
  }
}

function createClient({ OpenAI }: Sdk, apiKey: string, { baseUrl, headers, fetch }: ApiAccess): OpenAI {
  const options = {
    apiKey,
    baseURL: baseUrl ?? openAiHost,
    // retry.ts decides.
    maxRetries: 0,
    timeout: longestSilenceMs,
    // Its log would print message bodies.
    logLevel: 'off' as const,
    ...(headers && { defaultHeaders: headers }),
    ...(fetch === undefined ? {} : { fetch }),
  };
  return hidingVariables('OPENAI_', () => new OpenAI(options));
}

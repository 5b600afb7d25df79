import type OpenAI from 'openai';
import { rememberSuccess } from '#channel-kit/remember-success.ts';
import { hidingVariables } from '../../config/environment.ts';
import type { ApiAccess } from '../provider-options.ts';
import { type ClientOptions, SdkClients } from '../sdk-clients.ts';

/** OpenAI's own server. */
export const openAiHost = 'https://api.openai.com/v1';
/** Sent to servers that need no key, because the SDK insists on one. */
const NO_KEY = 'none';

/** Creates the clients of OpenAI's SDK, which takes 370 ms and 35 MB to load. */
export function openAiClients(access: ApiAccess): SdkClients<OpenAI> {
  const load = rememberSuccess(() => import('openai'));
  const create = async ({ apiKey, ...options }: ClientOptions) => {
    const { OpenAI } = await load();
    const all = { apiKey: apiKey || NO_KEY, baseURL: openAiHost, ...options };
    return hidingVariables('OPENAI_', () => new OpenAI(all));
  };
  return new SdkClients({ api: 'openai', load, create }, access);
}

import type Anthropic from '@anthropic-ai/sdk';
import { rememberSuccess } from '#channel-kit/remember-success.ts';
import { hidingVariables } from '../config/environment.ts';
import type { ApiAccess } from './provider-options.ts';
import { type ClientOptions, SdkClients } from './sdk-clients.ts';

/** Anthropic's own server. */
export const anthropicHost = 'https://api.anthropic.com';

/** Says whether the settings lead to Anthropic's own server, which has features that compatible ones may refuse. */
export function isAnthropicServer({ baseUrl = anthropicHost }: Pick<ApiAccess, 'baseUrl'>): boolean {
  return URL.canParse(baseUrl) && new URL(baseUrl).origin === anthropicHost;
}

/** Creates the clients of Anthropic's SDK, which takes 100 ms to load. */
export function anthropicClients(access: ApiAccess): SdkClients<Anthropic> {
  const load = rememberSuccess(() => import('@anthropic-ai/sdk'));
  const create = async (options: ClientOptions) => {
    const { Anthropic } = await load();
    const all = { baseURL: anthropicHost, openTelemetry: false as const, ...options };
    return hidingVariables('ANTHROPIC_', () => new Anthropic(all));
  };
  return new SdkClients({ api: 'anthropic', load, create }, access);
}

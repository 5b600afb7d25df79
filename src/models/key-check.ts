import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { ProviderSettings } from '../config/config.ts';
import { revealAll } from '../config/secret.ts';
import { leanFetch } from '../http/lean-fetch.ts';
import { anthropicHost } from './anthropic-clients.ts';
import { lostConnection, refusesKey, wordsOf } from './api-fault.ts';
import { openAiHost } from './openai/openai-clients.ts';

/** A provider's answer to a key. */
export type KeyAnswer =
  /** `models`: ids that the server lists; empty when it lists none. */
  | { readonly kind: 'accepted'; readonly models: readonly string[] }
  /** The provider refuses the key, or its account. */
  | { readonly kind: 'rejected'; readonly reason: string }
  | { readonly kind: 'unreachable'; readonly reason: string }
  /** The server's answer says neither: it doesn't list models, or has problems of its own. */
  | { readonly kind: 'unclear'; readonly reason: string };

/** How much of a refusal is examined, UTF-16 units. */
const mostSaid = 4_096;
const apiVersion = '2023-06-01';

/** Asks the provider for its list of models, which is free, once with each key. Never rejects. */
export function checkKeys(
  provider: Pick<ProviderSettings, 'kind' | 'apiKeys' | 'baseUrl' | 'headers'>,
  signal: AbortSignal,
): Promise<readonly KeyAnswer[]> {
  const keys = provider.apiKeys.map((key) => key.reveal());
  // The operator's own server may need no key.
  return Promise.all((keys.length > 0 ? keys : ['']).map((key) => checkKey(provider, key, signal)));
}

async function checkKey(
  provider: Pick<ProviderSettings, 'kind' | 'baseUrl' | 'headers'>,
  key: string,
  signal: AbortSignal,
): Promise<KeyAnswer> {
  const own = revealAll(provider.headers ?? {});
  try {
    const { url, headers } = questionFor(provider, key);
    const answer = await leanFetch(url, { headers: { ...own, ...headers }, signal });
    if (answer.ok) return { kind: 'accepted', models: modelIds(await answer.text()) };
    const said = await readRefusal(answer);
    const isRejected = answer.status === 403 || refusesKey(answer.status, said);
    return {
      kind: isRejected ? 'rejected' : 'unclear',
      reason: `${answer.status} ${wordsOf(said, [key, ...Object.values(own)])}`.trim(),
    };
  } catch (error) {
    const reason = signal.aborted ? 'no answer' : lostConnection(error).failure.detail;
    return { kind: 'unreachable', reason };
  }
}

function questionFor({ kind, baseUrl }: Pick<ProviderSettings, 'kind' | 'baseUrl'>, key: string) {
  if (kind === 'anthropic') {
    const url = under(baseUrl ?? anthropicHost, 'v1/models?limit=1');
    return { url, headers: { 'x-api-key': key, 'anthropic-version': apiVersion } };
  }
  const base = baseUrl ?? openAiHost;
  // OpenRouter shows its models to everyone, but a key's limits only to its holder.
  const url = under(base, new URL(base).hostname === 'openrouter.ai' ? 'key' : 'models');
  return { url, headers: key === '' ? {} : { authorization: `Bearer ${key}` } };
}

function under(base: string, path: string): URL {
  return new URL(path, base.endsWith('/') ? base : `${base}/`);
}

const modelList = z.object({ data: z.array(z.object({ id: z.string().max(200) })) });

function modelIds(text: string): readonly string[] {
  try {
    return (modelList.safeParse(parseJson(text)).data?.data ?? []).map(({ id }) => id);
  } catch {
    // For example a proxy's page: the key wasn't refused.
    return [];
  }
}

/** Returns the refusal's message; empty when it has none. */
async function readRefusal(answer: Response): Promise<string> {
  const said = (await answer.text()).slice(0, mostSaid);
  return /"(?:message|error)"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(said)?.[1]?.replace(/\\(.)/g, '$1') ?? '';
}

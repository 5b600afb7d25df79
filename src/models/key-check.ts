import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { RefusalClass } from '#contracts/model.ts';
import type { ProviderSettings } from '../config/config.ts';
import { revealAll } from '../config/secret.ts';
import { outboundFetch } from '../http/outbound-fetch.ts';
import { anthropicHost } from './anthropic.ts';
import { lostConnection, wordsOf } from './api-fault.ts';
import { openAiHost } from './openai/openai.ts';
import { longestRefusal, readRefusal } from './read-refusal.ts';
import { classOf } from './refusals.ts';
import { addressesOf } from './sdk-clients.ts';
import { refusalBehind } from './server-refusal.ts';

/** A provider's answer to a key. */
export type KeyAnswer =
  /** `models`: ids that the server lists; empty when it lists none. */
  | { readonly kind: 'accepted'; readonly models: readonly string[] }
  /** The provider refuses the key, or its account. */
  | { readonly kind: 'rejected'; readonly reason: string; readonly isCredit?: true }
  | { readonly kind: 'unreachable'; readonly reason: string }
  /** Something other than a model's server answers at the address. `right`: an address of the same host that fits. */
  | { readonly kind: 'elsewhere'; readonly reason: string; readonly right?: string }
  /** The server's answer says neither: it doesn't list models, or has problems of its own. */
  | { readonly kind: 'unclear'; readonly reason: string };

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
  let first: KeyAnswer | undefined;
  for (const base of addressesOf(provider.kind === 'anthropic' ? 'anthropic' : 'openai', provider.baseUrl)) {
    const { answer, isElsewhere } = await checkAt({ ...provider, baseUrl: base }, key, signal);
    if (!isElsewhere) return answer;
    first ??= answer;
  }
  const unclear: KeyAnswer = first ?? { kind: 'unclear', reason: 'no address' };
  if (provider.baseUrl === undefined || unclear.kind !== 'unclear') return unclear;
  if (await takesCalls(provider, signal)) return unclear;
  const right = await rightAddress(provider, key, signal);
  return { kind: 'elsewhere', reason: unclear.reason, ...(right !== undefined && { right }) };
}

/** Says whether the address takes calls, although it doesn't list models. An empty call is refused and costs nothing. */
async function takesCalls(
  { kind, baseUrl, headers }: Pick<ProviderSettings, 'kind' | 'baseUrl' | 'headers'>,
  signal: AbortSignal,
): Promise<boolean> {
  const path = kind === 'anthropic' ? 'v1/messages' : 'chat/completions';
  for (const base of addressesOf(kind === 'anthropic' ? 'anthropic' : 'openai', baseUrl)) {
    try {
      const own = { ...revealAll(headers ?? {}), 'content-type': 'application/json' };
      const request = { method: 'POST', headers: own, body: '{}', signal };
      const answer = await outboundFetch(under(base ?? '', path), request);
      const body = (await answer.text()).slice(0, longestRefusal);
      const refusal = readRefusal({ status: answer.status, headers: answer.headers, body, isAnswer: true });
      if (!refusal.isPage && classOf(refusal, () => '') !== 'address') return true;
    } catch {
      // Then it doesn't take calls.
    }
  }
  return false;
}

/** Paths under which servers have their API: most of them, Open WebUI, OpenRouter, Groq, and for Claude's API. */
const usualPaths = {
  openai: ['/v1', '/api/v1', '/api', '/openai/v1', '/v1beta/openai'],
  anthropic: ['', '/anthropic', '/api', '/api/anthropic'],
} as const;

async function rightAddress(
  provider: Pick<ProviderSettings, 'kind' | 'baseUrl' | 'headers'>,
  key: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { origin } = new URL(provider.baseUrl ?? '');
  for (const path of usualPaths[provider.kind === 'anthropic' ? 'anthropic' : 'openai']) {
    const baseUrl = `${origin}${path}`;
    const { answer, isElsewhere } = await checkAt({ ...provider, baseUrl }, key, signal);
    if (!isElsewhere && answer.kind !== 'unreachable') return baseUrl;
  }
  return undefined;
}

type CheckedKey = {
  readonly answer: KeyAnswer;
  /** Something else than a model's server answered, so another address may be meant. */
  readonly isElsewhere: boolean;
};

async function checkAt(
  provider: Pick<ProviderSettings, 'kind' | 'headers'> & { readonly baseUrl: string | undefined },
  key: string,
  signal: AbortSignal,
): Promise<CheckedKey> {
  const own = revealAll(provider.headers ?? {});
  try {
    const { url, headers } = questionFor(provider, key);
    const answer = await outboundFetch(url, { headers: { ...own, ...headers }, signal });
    const body = (await answer.text()).slice(0, longestRefusal);
    const refusal = readRefusal({ status: answer.status, headers: answer.headers, body, isAnswer: true });
    if (answer.ok && !refusal.isPage)
      return { answer: { kind: 'accepted', models: modelIds(body) }, isElsewhere: false };
    const is = classOf(refusal, () => '');
    const said = refusal.isPage ? `a page instead of an answer: ${refusal.said}` : refusal.said;
    const where = is === 'address' ? ` (asked ${url.origin}${url.pathname})` : '';
    return {
      answer: {
        ...(refused.has(is) || answer.status === 403
          ? { kind: 'rejected', ...(is === 'credit' && { isCredit: true }) }
          : { kind: 'unclear' }),
        reason: `${answer.status} ${wordsOf(said, [key, ...Object.values(own)])}`.trim() + where,
      },
      isElsewhere: is === 'address',
    };
  } catch (error) {
    const redirected = refusalBehind(error);
    if (redirected)
      return { answer: { kind: 'unreachable', reason: redirected.message }, isElsewhere: false };
    const reason = signal.aborted ? 'no answer' : lostConnection(error).failure.detail;
    return { answer: { kind: 'unreachable', reason }, isElsewhere: false };
  }
}

/** Refusals that another key or account wouldn't get. */
const refused: ReadonlySet<RefusalClass> = new Set(['key', 'credit', 'forbidden']);

function questionFor(
  { kind, baseUrl }: { readonly kind: ProviderSettings['kind']; readonly baseUrl: string | undefined },
  key: string,
) {
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

/**
 * Which addresses a configured base URL may mean. People copy it from a server's documents with or without its version,
 * or with the path of a call. Pure.
 */

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

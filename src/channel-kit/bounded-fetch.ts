import { readJson } from './read-json.ts';

/** Returns a `fetch` for JSON: `json()` of its responses is `readJson`, the only way to read their bodies. */
export function withBoundedJson(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { ok, status, statusText, body } = response;
    const json = () => readJson(body ?? []);
    return {
      ...{ ok, status, statusText, json },
      // Created on demand, because they are rarely needed.
      get headers() {
        return response.headers;
      },
      // The part of a `Response` that a client needs to read JSON.
    } as unknown as Response;
  };
}

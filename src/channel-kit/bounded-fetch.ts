import { readJson } from './bounded-json.ts';

/** A `fetch` for JSON: `json()` of its responses is `readJson`, and nothing else of their bodies can be read. */
export function withBoundedJson(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { ok, status, statusText, body } = response;
    const json = () => readJson(body ?? [], { isEndlessKept: true });
    return {
      ...{ ok, status, statusText, json },
      // Made on demand, and seldom asked for.
      get headers() {
        return response.headers;
      },
      // As much of a `Response` as a client asks for that reads JSON.
    } as unknown as Response;
  };
}

import { readJson } from './bounded-json.ts';

/** A `fetch` for JSON: `json()` of its responses is `readJson`, and nothing else of their bodies can be read. */
export function withBoundedJson(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const { ok, status, statusText, headers, body } = await fetch(input, init);
    const json = () => readJson(body ?? [], { isEndlessKept: true });
    // As much of a `Response` as a client asks for that reads JSON.
    return { ok, status, statusText, headers, json } as unknown as Response;
  };
}

import { ApiError } from './types.ts';

/** What a field of a request may be. Numbers must be whole; `null` and absent are the same. */
type Kind = 'string' | 'strings' | 'int' | 'bool' | 'mentions' | 'preview';
type Value = {
  string: string;
  strings: readonly string[];
  int: number;
  bool: boolean;
  mentions: readonly MentionInput[];
  preview: LinkPreviewInput;
};
export type MentionInput = { readonly start: number; readonly length: number; readonly author: string };
export type LinkPreviewInput = {
  readonly url: string;
  readonly title: string;
  readonly description: string;
  readonly base64_thumbnail: string;
};
export type Shape = Readonly<Record<string, Kind>>;
export type Bound<S extends Shape> = { readonly [F in keyof S]?: Value[S[F]] };

const mention: Shape = { start: 'int', length: 'int', author: 'string' };
const preview: Shape = { url: 'string', title: 'string', description: 'string', base64_thumbnail: 'string' };

/**
 * Reads a JSON body as the server's binder does: unknown fields are ignored. A value of the wrong type (above all a
 * timestamp as a string) gets the whole call refused, with JSON labeled text/plain.
 */
export function bindBody<S extends Shape>(body: unknown, shape: S): Bound<S> {
  if (!isObject(body)) throw misfit();
  const bound: Record<string, unknown> = {};
  for (const [field, kind] of Object.entries(shape)) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    bound[field] = bindValue(value, kind);
  }
  return bound as Bound<S>;
}

function bindValue(value: unknown, kind: Kind): unknown {
  switch (kind) {
    case 'string':
      return typeof value === 'string' ? value : fail();
    case 'bool':
      return typeof value === 'boolean' ? value : fail();
    case 'int':
      return Number.isSafeInteger(value) ? value : fail();
    case 'strings':
      return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : fail();
    case 'mentions':
      if (!Array.isArray(value)) return fail();
      return value.map((one: unknown) => ({ start: 0, length: 0, author: '', ...bindBody(one, mention) }));
    case 'preview':
      return { url: '', title: '', description: '', base64_thumbnail: '', ...bindBody(value, preview) };
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const misfit = () => new ApiError(400, "Couldn't process request - invalid request", { isPlain: true });

function fail(): never {
  throw misfit();
}

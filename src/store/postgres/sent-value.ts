import { cleanText } from '#channel-kit/clean-text.ts';
import { ParleyError } from '#contracts/errors.ts';

/** A statement's value as PostgreSQL gets it: as a text, whatever its column is. */
export function sentValue(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return storable(value);
  if (typeof value === 'object')
    throw new ParleyError('internal', 'A statement’s values are texts and numbers.');
  return String(value);
}

/**
 * PostgreSQL refuses U+0000 in a text, and where it reads JSON also the escapes of U+0000 and of half a pair, which
 * `JSON.stringify` writes. Every value of every statement passes here, so nothing is stored with one, and what is looked
 * up by one isn't found.
 */
function storable(value: string): string {
  const text = value.includes('\0') ? cleanText(value) : value;
  return isJson.test(text) && text.includes('\\u') ? text.replaceAll(escapes, cleanEscape) : text;
}

const isJson = /^[[{]/;
/** Escapes of JSON one after the other, a pair of surrogates as one: a backslash that is escaped itself begins none. */
const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|[^u])/g;

function cleanEscape(written: string): string {
  return /^\\u(?:0000|[dD][89a-fA-F][\da-fA-F]{2})$/.test(written) ? '\ufffd' : written;
}

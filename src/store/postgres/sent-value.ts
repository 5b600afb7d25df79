import { cleanText } from '#channel-kit/clean-text.ts';
import { ParleyError } from '#contracts/errors.ts';

/** Returns a statement's value as sent to PostgreSQL: as text, whatever the column's type. */
export function sentValue(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return storable(value);
  if (typeof value === 'object')
    throw new ParleyError('internal', 'A statement’s values must be texts or numbers.');
  return String(value);
}

/**
 * Replaces characters that PostgreSQL rejects: U+0000 in text, and where it parses JSON also the escapes of U+0000 and
 * of lone surrogates, which `JSON.stringify` writes. Every value of every statement passes through here, so no such
 * character is stored, and a lookup by one finds nothing.
 */
function storable(value: string): string {
  const text = value.includes('\0') ? cleanText(value) : value;
  return isJson.test(text) && text.includes('\\u') ? text.replaceAll(escapes, cleanEscape) : text;
}

const isJson = /^[[{]/;
/** Matches JSON escapes one by one, a surrogate pair as one, so that an escaped backslash doesn't begin an escape. */
const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|[^u])/g;

function cleanEscape(written: string): string {
  return /^\\u(?:0000|[dD][89a-fA-F][\da-fA-F]{2})$/.test(written) ? '\ufffd' : written;
}

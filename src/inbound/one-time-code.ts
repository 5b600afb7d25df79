import { createHash, randomInt } from 'node:crypto';

/** Without I, O, 0 and 1, which look alike: 32 characters, so that eight of them carry 40 bits. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const length = 8;

export function newOneTimeCode(): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}

/** The code as it was made, whatever case and separators a person typed; undefined for what can be none. */
export function readOneTimeCode(typed: string): string | undefined {
  const code = typed.replace(/[\s-]/g, '').toUpperCase();
  const isCode = code.length === length && [...code].every((character) => alphabet.includes(character));
  return isCode ? code : undefined;
}

/** What is stored in place of the code. `purpose` keeps a code from being used for anything else. */
export function hashOneTimeCode(purpose: string, code: string): string {
  return createHash('sha256').update(`${purpose}:${code}`).digest('hex');
}

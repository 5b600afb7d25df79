import { createHash, randomInt } from 'node:crypto';

/** Without I, O, 0 and 1, which look alike: 32 characters, so that eight of them carry 40 bits. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const length = 8;

/** A new random code for pairing or linking. */
export function newOneTimeCode(): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}

/** A new id of a question, short enough to type: ten letters and digits, 50 bits. */
export function newApprovalId(): string {
  const digits = Array.from({ length: 10 }, () => alphabet[randomInt(alphabet.length)]);
  return digits.join('').toLowerCase();
}

/** The code as it was made, whatever case and separators a person typed; undefined for what can be none. */
export function readOneTimeCode(typed: string): string | undefined {
  const code = typed.replace(/[\s-]/g, '').toUpperCase();
  const isCode = code.length === length && [...code].every((character) => alphabet.includes(character));
  return isCode ? code : undefined;
}

/** `purpose` keeps a code from being used for anything else. */
function hashOneTimeCode(purpose: string, code: string): string {
  return createHash('sha256').update(`${purpose}:${code}`).digest('hex');
}

/** Hash stored for a pairing code; it links no accounts. `code` as `readOneTimeCode` gives it. */
export function hashPairingCode(code: string): string {
  return hashOneTimeCode('pair', code);
}

/** Hash stored for a link code; it approves nobody. `code` as `readOneTimeCode` gives it. */
export function hashLinkCode(code: string): string {
  return hashOneTimeCode('link', code);
}

import { createHash, randomInt } from 'node:crypto';
import { agentId } from '#contracts/ids.ts';
import { platformRef } from '../sessions/identities.ts';
import { sessionKeyOf } from '../sessions/session-key-of.ts';
import type { CommandCall, CommandPolicy } from './chat-command.ts';

/** Without I, O, 0 and 1, which look alike: 32 characters, so that eight of them have 40 bits. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const length = 8;

/** Makes a new random code for pairing or linking. */
export function newOneTimeCode(): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}

/** Makes a new question id, short enough to type: ten letters and digits, 50 bits. */
export function newApprovalId(): string {
  const digits = Array.from({ length: 10 }, () => alphabet[randomInt(alphabet.length)]);
  return digits.join('').toLowerCase();
}

/** Normalizes a typed code, whatever its case and separators; returns undefined if the text can't be a code. */
export function readOneTimeCode(typed: string): string | undefined {
  const code = typed.replace(/[\s-]/g, '').toUpperCase();
  const isCode = code.length === length && [...code].every((character) => alphabet.includes(character));
  return isCode ? code : undefined;
}

/** `purpose` keeps a code from being used for anything else. */
function hashOneTimeCode(purpose: string, code: string): string {
  return createHash('sha256').update(`${purpose}:${code}`).digest('hex');
}

/** Returns the hash stored for a pairing code; it links no accounts. `code` as returned by `readOneTimeCode`. */
export function hashPairingCode(code: string): string {
  return hashOneTimeCode('pair', code);
}

/** Returns the hash stored for a link code; it approves nobody. `code` as returned by `readOneTimeCode`. */
export function hashLinkCode(code: string): string {
  return hashOneTimeCode('link', code);
}

type LinkedAccounts = {
  /** Every account of the person, `<channel>:<peer>`. */
  readonly people: readonly string[];
  /** Key of the lane that this account used before it was linked. */
  readonly formerLane: string;
};

/** Returns the sender's linked accounts; undefined in groups, and for an account that isn't linked. */
export function linkedAccounts(
  { dmScope }: CommandPolicy,
  { envelope, identities, lane }: CommandCall,
): LinkedAccounts | undefined {
  const { route, chat, sender } = envelope;
  const identity = chat.kind === 'dm' ? identities.get(platformRef(route.channel, sender.id)) : undefined;
  if (identity === undefined) return undefined;
  const settings = { agent: agentId(lane.agentId), dmScope, identityLinks: new Map<string, string>() };
  const formerLane = sessionKeyOf({ route, chat, sender }, settings);
  return { people: identities.accountsOf(identity).map(({ ref }) => ref), formerLane };
}

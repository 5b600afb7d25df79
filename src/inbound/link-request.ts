import { readOneTimeCode } from './one-time-code.ts';

/** What `/link …` asks for. */
export type LinkRequest =
  | { readonly kind: 'ask' }
  | { readonly kind: 'list' }
  /** `isFromLink`: the code came with a link that anybody may have made. */
  | { readonly kind: 'join'; readonly code: string; readonly isFromLink?: true }
  | { readonly kind: 'confirm'; readonly code: string }
  /** `channel:peer`. */
  | { readonly kind: 'remove'; readonly target: string };

/** Parses what follows `/link`; a sentence for the person when it is none of these. */
export function parseLinkRequest(text: string): LinkRequest | string {
  if (text === '') return { kind: 'ask' };
  const [word = '', target, ...more] = text.split(/\s+/);
  if (word.toLowerCase() === 'list' && target === undefined) return { kind: 'list' };
  if (word.toLowerCase() === 'remove') {
    const isAccount = target !== undefined && more.length === 0 && /^[a-z][a-z0-9-]*:\S+$/.test(target);
    return isAccount ? { kind: 'remove', target } : 'Use /link remove channel:id; /link list shows them.';
  }
  const isConfirming = word.toLowerCase() === 'confirm';
  const code = readOneTimeCode(isConfirming ? text.slice(word.length) : text);
  return code === undefined
    ? 'Use /link to get a code, /link and the code to use it, /link list, or /link remove channel:id.'
    : { kind: isConfirming ? 'confirm' : 'join', code };
}

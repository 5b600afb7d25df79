import { readOneTimeCode } from './one-time-code.ts';

/** What `/pair …` asks for. */
export type PairRequest =
  | { readonly kind: 'list' }
  /** Names whom the code would let in; `confirm` lets them in. */
  | { readonly kind: 'approve' | 'confirm'; readonly code: string }
  /** `channel:peer`. */
  | { readonly kind: 'revoke'; readonly ref: string };

/** Parses what follows `/pair`; a sentence for the person when it is none of these. */
export function parsePairRequest(text: string): PairRequest | string {
  const [, word = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
  switch (word.toLowerCase()) {
    case '':
    case 'list':
      return rest === '' ? { kind: 'list' } : 'Use /pair list on its own.';
    case 'approve':
    case 'confirm': {
      const kind = word.toLowerCase() === 'approve' ? 'approve' : 'confirm';
      const code = readOneTimeCode(rest);
      return code === undefined
        ? `Use /pair ${kind} and the code of 8 letters and digits that the person was shown.`
        : { kind, code };
    }
    case 'revoke':
      return isRef(rest)
        ? { kind: 'revoke', ref: rest }
        : 'Use /pair revoke channel:id; /pair list shows them.';
    default:
      return 'Use /pair list, /pair approve and the code, /pair confirm and the code, or /pair revoke channel:id.';
  }
}

/** Whether it has the form of `channel:peer`. */
export function isRef(text: string): boolean {
  return /^[a-z][a-z0-9-]*:\S+$/.test(text);
}

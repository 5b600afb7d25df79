import type { ReplyRoute } from '#contracts/route.ts';
import type { Rights } from './trust-line.ts';

/** A `/link` request. Accounts are named `<channel>:<peer>`; every text is for a person. */
export type LinkStep = AskForCode | JoinByCode | RemoveAccount | VoidCode;

export type AskForCode = {
  readonly kind: 'ask';
  readonly peer: string;
  /** The account's name, cleaned. */
  readonly name: string;
  /** Where the configuration has put the account. */
  readonly identity?: string;
  readonly codeHash: string;
  readonly ttlMs: number;
  /** The name of the identity, should one begin. */
  readonly newIdentity: string;
  /** Leads that identity's session key to the lane in which the conversation has stood so far. */
  readonly alias?: { readonly key: string; readonly laneKey: string };
  /** `used` takes the place of the text that shows the code, once the code is worth nothing. */
  readonly texts: { readonly asked: string; readonly used: string };
};

/** `{other}` in a text stands for the account that asked. */
export type JoinByCode = {
  readonly kind: 'join';
  readonly peer: string;
  /**
   * `typed` links at once those who have the same rights; otherwise, and for an `unsure` one, it says whom
   * the code joins, and only then, from the same account in the same conversation, `confirmed` links.
   */
  readonly stage: 'typed' | 'unsure' | 'confirmed';
  readonly rights: Rights;
  readonly identity?: string;
  readonly codeHash: string;
  readonly texts: {
    readonly confirm: string;
    readonly linked: string;
    /** For the conversation in which the code was asked for. */
    readonly told: string;
    /** Put behind both when the accounts have different rights. */
    readonly lowered: string;
    readonly wrong: string;
    readonly tooMany: string;
    readonly self: string;
    readonly already: string;
    readonly elsewhere: string;
  };
};

export type RemoveAccount = {
  readonly kind: 'remove';
  readonly peer: string;
  readonly identity?: string;
  readonly target: string;
  /** The identity in which the account is alone, should it need one. */
  readonly newIdentity: string;
  readonly texts: { readonly removed: string; readonly told: string; readonly notLinked: string };
};

/** A code that was shown to a group is nobody's proof any more. */
export type VoidCode = { readonly kind: 'void'; readonly codeHash?: string; readonly text: string };

/** Data of the requester, kept until the code is used. */
export type Asked = Pick<AskForCode, 'peer' | 'name' | 'identity' | 'newIdentity' | 'alias'> & {
  readonly route: ReplyRoute;
  readonly laneKey: string;
  readonly used: string;
};

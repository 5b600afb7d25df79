/** A signed-in browser. Its times are those of the server that signed it in. */
export type SignInsTable = {
  id: string;
  /** Hash of the cookie, keyed with the access token. The cookie itself is not stored. */
  secretHash: string;
  /** Identifies the access token that was used. */
  issuer: string;
  /** The browser's name as printable text. */
  browser: string;
  createdAt: number;
  lastSeenAt: number;
  expiresAt: number;
};

/** An address that has sent too many wrong secrets. */
export type LockoutsTable = { source: string; until: number };

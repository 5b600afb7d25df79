/**
 * Scopes of a program's token: talk to agents (`chat`), see conversations and state (`read`), and change what is
 * running or waiting (`operate`). None of them reaches who has access: tokens, sign-ins, pairing and links.
 */
export const tokenScopes = ['chat', 'read', 'operate'] as const;

/** One of them. */
export type TokenScope = (typeof tokenScopes)[number];

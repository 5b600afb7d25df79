import type { Tx } from '../../base/command.ts';

/** Splits `<channel>:<peer>`; both are empty for any other text. */
export function readRef(text: string): { readonly channel: string; readonly peer: string } {
  const [, channel = '', peer = ''] = /^([a-z][a-z0-9-]*):(\S+)$/.exec(text) ?? [];
  return { channel, peer };
}

/** Returns the keys that a conversation with this id would have at these bot accounts. */
export function conversationsNamed(accounts: readonly string[], id: string): readonly string[] {
  const spelt = [...new Set([id, encodeURIComponent(id)])];
  return accounts.flatMap((account) => spelt.map((segment) => `${account}/${segment}`));
}

/** Finds a person's (`<channel>:<peer>`) direct conversation, on networks where it has the person's id. */
export async function findDirect(tx: Tx, ref: string): Promise<string | undefined> {
  const { channel, peer } = readRef(ref);
  const accounts = (await tx.db.selectFrom('accounts').select('key').execute()).map(({ key }) => key);
  const own = accounts.filter((account) => account.startsWith(`${channel}/`));
  for (const key of conversationsNamed(own, peer)) if ((await readWriter(tx, key)) === peer) return key;
  return undefined;
}

/** Reads a sender who has written in the conversation; undefined if none of its messages has entered a lane. */
export async function readWriter(tx: Tx, conversationKey: string): Promise<string | undefined> {
  const items = tx.db.selectFrom('inbox').select('senderId').where('conversationKey', '=', conversationKey);
  return (await items.limit(1).executeTakeFirst())?.senderId;
}

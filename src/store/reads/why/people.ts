import type { Tx } from '../../base/command.ts';

/** The parts of `<channel>:<peer>`; empty for any other text. */
export function readRef(text: string): { readonly channel: string; readonly peer: string } {
  const [, channel = '', peer = ''] = /^([a-z][a-z0-9-]*):(\S+)$/.exec(text) ?? [];
  return { channel, peer };
}

/** Keys that a conversation with this id has at these bot accounts. */
export function conversationsNamed(accounts: readonly string[], id: string): readonly string[] {
  const spelt = [...new Set([id, encodeURIComponent(id)])];
  return accounts.flatMap((account) => spelt.map((segment) => `${account}/${segment}`));
}

/** The direct conversation of a person (`<channel>:<peer>`) that has their id, on networks where it has. */
export async function findDirect(tx: Tx, ref: string): Promise<string | undefined> {
  const { channel, peer } = readRef(ref);
  const accounts = (await tx.db.selectFrom('accounts').select('key').execute()).map(({ key }) => key);
  const own = accounts.filter((account) => account.startsWith(`${channel}/`));
  for (const key of conversationsNamed(own, peer)) if ((await readWriter(tx, key)) === peer) return key;
  return undefined;
}

/** Somebody who has written in the conversation; undefined when no message of it entered a lane. */
export async function readWriter(tx: Tx, conversationKey: string): Promise<string | undefined> {
  const items = tx.db.selectFrom('inbox').select('senderId').where('conversationKey', '=', conversationKey);
  return (await items.limit(1).executeTakeFirst())?.senderId;
}

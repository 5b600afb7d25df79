/**
 * Links made in chat, for the operator to list and end. The operator never creates one, since a link requires proof
 * from both accounts.
 */
import type { StoreCommand, StoreQuery } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { insertNotice } from '../delivery/insert-notice.ts';
import { beginLinkStep, nameIdentity, removeAccount } from './change-links.ts';
import { lockLinks } from './link-attempts.ts';

/** An account that was linked in chat; `peer`: `<channel>:<peer>`. */
export type ChatLink = { readonly peer: string; readonly identity: string; readonly linkedAt: number };

/** Reads the accounts that were linked in chat, grouped by identity, in the order in which they joined. */
export const readChatLinks: StoreQuery<{ readonly limit: number }, readonly ChatLink[]> = {
  query: 'readChatLinks',
  run: (tx, { limit }) =>
    tx.db
      .selectFrom('links')
      .select(['peer', 'identity', 'linkedAt'])
      .orderBy('identity')
      .orderBy('linkedAt')
      .orderBy('peer')
      .limit(limit)
      .execute(),
};

export type RemoveLinkInput = {
  readonly peer: string;
  /** Key of the notice to the account. */
  readonly noticeKey: string;
};

/**
 * Removes an account from its identity, like `/link remove` from another account, and notifies it. Safe to repeat: an
 * account that isn't linked stays as it is.
 */
export const removeLink: StoreCommand<
  RemoveLinkInput,
  { readonly isRemoved: boolean; readonly effects: Effects }
> = {
  name: 'removeLink',
  run: async (tx, { peer, noticeKey }) => {
    const effects = noEffects();
    if (tx.dialect === 'postgres') await lockLinks(tx);
    await beginLinkStep(tx);
    const asked = { own: peer, target: peer, identity: undefined, newIdentity: nameIdentity() };
    const removed = await removeAccount(tx, asked);
    if (removed.kind === 'not-linked') return { isRemoved: false, effects };
    const notice = { key: noticeKey, route: removed.route, text: tx.texts.linkEndedByOwner };
    effects.deliveries.push(await insertNotice(tx, notice));
    return { isRemoved: true, effects };
  },
};

import { changeKeptMention } from '../access/admit-group.ts';
import type { Tx } from '../base/command.ts';
import { json, type KeptMessage } from '../base/json.ts';
import { changeRow } from '../base/row-by-key.ts';
import { leaveFiles } from '../rows/left-files.ts';
import type { AcceptEventInput } from './accept-input.ts';
import { withNewText } from './apply-change.ts';
import type { KeptChange } from './proposal.ts';

/**
 * Changes or drops the message kept for a stranger or for a group, if the event is about it. The caller must lock the
 * account.
 */
export async function changeKept(
  tx: Tx,
  { input: { account }, proposal: { senderId, messageId, conversationKey } }: AcceptEventInput,
  change: KeptChange,
): Promise<void> {
  const changed = (known: KeptMessage) =>
    change === 'deleted' ? undefined : { ...known, content: withNewText(known.content, change).changed };
  await changeKeptMention(tx, { subject: conversationKey, senderId, messageId }, changed);
  const row = await tx.db
    .selectFrom('pairings')
    .select(['id', 'kept'])
    .where('account', '=', account)
    .where('peerId', '=', senderId)
    .executeTakeFirst();
  const known = json.kept(row?.kept ?? null);
  if (row === undefined || known === undefined || known.messageId !== messageId) return;
  const next = changed(known);
  if (next === undefined) await leaveFiles(tx, { route: known.route, files: known.content.attachments });
  await changeRow(tx, 'pairings', row.id, { kept: next === undefined ? null : JSON.stringify(next) });
}

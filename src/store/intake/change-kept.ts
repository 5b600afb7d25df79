import type { Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { changeRow } from '../base/row-by-key.ts';
import { leaveFiles } from '../rows/left-files.ts';
import type { AcceptEventInput } from './accept-input.ts';
import { withNewText } from './apply-change.ts';
import type { KeptChange } from './proposal.ts';

/** Changes or drops the message kept for a stranger, if the event is about it. The caller must lock the account. */
export async function changeKept(
  tx: Tx,
  { input: { account }, proposal: { senderId, messageId } }: AcceptEventInput,
  change: KeptChange,
): Promise<void> {
  const row = await tx.db
    .selectFrom('pairings')
    .select(['id', 'kept'])
    .where('account', '=', account)
    .where('peerId', '=', senderId)
    .executeTakeFirst();
  const known = json.kept(row?.kept ?? null);
  if (row === undefined || known === undefined || known.messageId !== messageId) return;
  const kept =
    change === 'deleted'
      ? null
      : JSON.stringify({ ...known, content: withNewText(known.content, change).changed });
  if (kept === null) await leaveFiles(tx, { route: known.route, files: known.content.attachments });
  await changeRow(tx, 'pairings', row.id, { kept });
}

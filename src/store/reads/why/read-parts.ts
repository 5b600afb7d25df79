import type { Tx } from '../../base/command.ts';
import { json } from '../../base/json.ts';
import { excerptOf } from '../../base/one-line.ts';
import { findRow, type RowOf, withoutNulls } from '../../base/row-access.ts';
import type { EventFacts, ItemFacts } from './read-items.ts';

export type PartRequest = {
  readonly keys?: readonly string[];
  readonly runIds?: readonly string[];
  readonly withExcerpts: boolean;
};

/** Reads the parts with these keys and those that these runs stored. */
export async function readParts(
  tx: Tx,
  { keys = [], runIds = [], withExcerpts }: PartRequest,
): Promise<readonly PartFacts[]> {
  const rows = [
    ...(keys.length === 0 ? [] : await outboxRows(tx).where('key', 'in', keys).execute()),
    ...(runIds.length === 0 ? [] : await outboxRows(tx).where('runId', 'in', runIds).execute()),
  ];
  return rows.map((row) => factsOf(row, withExcerpts));
}

type Row = RowOf<typeof outboxRows>;

function outboxRows(tx: Tx) {
  return tx.db
    .selectFrom('outbox')
    .select(['key', 'conversationKey', 'purpose', 'state', 'attempts', 'problem', 'runId', 'answer'])
    .select(['createdAt', 'dueAt', 'endedAt', 'receipts', 'content', 'waitAskedSince', 'waitAskedUntil']);
}

/** A part as shown by `why`. */
export type PartFacts = ReturnType<typeof factsOf>;

function factsOf(row: Row, withExcerpts: boolean) {
  const { receipts, content: _, waitAskedSince: since, waitAskedUntil: until, ...part } = withoutNulls(row);
  const excerpt = withExcerpts ? excerptOfPart(row) : undefined;
  return {
    ...part,
    /** The platform's message ids. */
    messageIds: json.strings(receipts ?? null),
    /** Since when its platform has been asking to delay it, and until when according to the last request. */
    ...(since !== undefined && until !== undefined && { askedToWait: { since, until } }),
    ...(excerpt !== undefined && { excerpt }),
  };
}

/** Returns an excerpt of the agent's own messages only, since a notice may show a usable code. */
function excerptOfPart({ purpose, content }: Row): string | undefined {
  if (purpose === 'notice') return undefined;
  const said = json.outbound(content);
  return said.kind === 'text' || said.kind === 'edit' ? excerptOf(said.text.text) : `(${said.kind})`;
}

/** Suffixes of the keys of notices that respond to an event or item. */
const noticeNames = ['answer', 'cancelled', 'offer', 'overflow', 'pairing', 'refused', 'told', 'waiting'];

/** Returns the keys that notices responding to these events and items would have. */
export function partKeysOf(events: readonly EventFacts[], items: readonly ItemFacts[]): readonly string[] {
  const names = [
    ...events.map(({ account, eventKey }) => `${account}:${eventKey}`),
    ...items.map(({ id }) => id),
  ];
  return names.flatMap((name) => noticeNames.map((notice) => `${name}:${notice}`));
}

export type Origin = {
  readonly eventKeys: readonly { readonly account: string; readonly eventKey: string }[];
  readonly itemIds: readonly string[];
};

const unknownOrigin: Origin = { eventKeys: [], itemIds: [] };

/** Finds the subject of a notice without a run: the event or item with which its key begins. */
export async function originOfPart(tx: Tx, key: string): Promise<Origin> {
  const name = key.slice(0, key.lastIndexOf(':'));
  const item = await findRow(tx, 'inbox', name, ['id']);
  if (item) return { ...unknownOrigin, itemIds: [item.id] };
  const accounts = await tx.db.selectFrom('accounts').select('key').execute();
  const account = accounts.find((known) => name.startsWith(`${known.key}:`))?.key;
  if (account === undefined) return unknownOrigin;
  const eventKey = name.slice(account.length + 1);
  const event = await tx.db
    .selectFrom('ledger')
    .select(['account', 'eventKey', 'inboxId'])
    .where('account', '=', account)
    .where('eventKey', '=', eventKey)
    .executeTakeFirst();
  if (!event) return unknownOrigin;
  const itemIds = event.inboxId === null ? [] : [event.inboxId];
  return { eventKeys: [{ account, eventKey }], itemIds };
}

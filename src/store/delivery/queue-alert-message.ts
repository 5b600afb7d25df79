import type { Selectable } from 'kysely';
import type { ReplyRoute } from '#contracts/route.ts';
import { isPending, markTold, nameOfStored, ownerPartPrefix } from '../alerts/alert.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { findRow, lockRows } from '../base/row-access.ts';
import type { OwnerNoticesTable } from '../base/tables.ts';
import { insertPart } from './part.ts';

/** An alert as it is stored. */
export type StoredNotice = Omit<AlertRow, 'details' | 'endedAt'> & {
  readonly values: Readonly<Record<string, string>>;
  readonly endedAt: number | undefined;
};

const columns = ['id', 'kind', 'subject', 'details', 'count', 'raisedAt', 'lastAt', 'endedAt'] as const;

/** Reads alerts, and ends of alerts, that are still to be reported to the owner; oldest first. */
export const readPendingNotices: StoreQuery<{ readonly limit: number }, readonly StoredNotice[]> = {
  query: 'readPendingNotices',
  run: async (tx, { limit }) => {
    const rows = await tx.db
      .selectFrom('ownerNotices')
      .select(columns)
      .where(isPending())
      .orderBy('raisedAt')
      .limit(limit)
      .execute();
    return rows.flatMap(storedNotice);
  },
};

/** Reads open alerts that weren't dismissed; newest first. */
export const readOpenNotices: StoreQuery<{ readonly limit: number }, readonly StoredNotice[]> = {
  query: 'readOpenNotices',
  run: async (tx, { limit }) => {
    const rows = await tx.db
      .selectFrom('ownerNotices')
      .select(columns)
      .where('endedAt', 'is', null)
      .where('dismissedAt', 'is', null)
      .orderBy('raisedAt', 'desc')
      .limit(limit)
      .execute();
    return rows.flatMap(storedNotice);
  },
};

type AlertRow = Pick<Selectable<OwnerNoticesTable>, (typeof columns)[number]>;

function storedNotice(row: AlertRow): readonly StoredNotice[] {
  const name = nameOfStored(row);
  const { details, endedAt, ...rest } = row;
  return name ? [{ ...rest, ...name, values: valuesIn(details), endedAt: endedAt ?? undefined }] : [];
}

/** Reads the values; an alert with damaged values is reported without them rather than not at all. */
function valuesIn(details: string): StoredNotice['values'] {
  try {
    return json.values(details);
  } catch {
    return {};
  }
}

export type AlertMessageInput = {
  readonly id: string;
  readonly step: 'raised' | 'ended';
  /** Absent: no message is sent. */
  readonly text?: string;
  /** Where to notify the owner; absent: only on the page and in the log. An end goes where its beginning went. */
  readonly route?: ReplyRoute;
};

/**
 * Puts the message to the owner into the outbox and marks the alert as told, in one transaction. Safe to repeat: each
 * step is reported once. Returns the conversation to deliver in, if there is one.
 */
export const queueAlertMessage: StoreCommand<AlertMessageInput, string | undefined> = {
  name: 'queueAlertMessage',
  run: async (tx, { id, step, text, route }) => {
    const [row] = await lockRows(tx, tx.db.selectFrom('ownerNotices').selectAll().where('id', '=', id));
    const isThisStep = row?.isPending === 1 && (row.endedAt === null) === (step === 'raised');
    if (!row || !isThisStep) return undefined;
    const place = step === 'raised' ? route : await routeOfPart(tx, row.partKey);
    const said = text !== undefined && place ? { text, route: place } : undefined;
    const key = `${ownerPartPrefix}${id}:${step}`;
    await markTold(tx, row, said && key);
    if (!said) return undefined;
    const content = { kind: 'text', text: { text: said.text, spans: [] } } as const;
    return insertPart(tx, { key, route: said.route, content, purpose: 'notice' });
  },
};

async function routeOfPart(tx: Tx, key: string | null): Promise<ReplyRoute | undefined> {
  if (key === null) return undefined;
  const part = await findRow(tx, 'outbox', key, ['route']);
  return part && json.route(part.route);
}

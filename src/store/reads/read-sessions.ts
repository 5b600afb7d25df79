import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { StoreQuery } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { findRow } from '../base/row-by-key.ts';

/** A session as lists show it. */
export type SessionSummary = {
  readonly id: string;
  readonly key: string;
  readonly agentId: string;
  readonly title: string | undefined;
  readonly messageCount: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Micro-dollars. */
  readonly cost: number;
  /** Chosen with `/model`. */
  readonly model: string | undefined;
  /** About so many tokens in its last run; 0 before the first. */
  readonly instructionTokens: number;
  readonly toolTokens: number;
  readonly createdAt: number;
  readonly updatedAt: number;
};

/**
 * Reads the latest sessions, or those of the given keys or ids. Sessions that name others are not listed. The latest of a key
 * needn't be its lane's own: a note on a message of an earlier one is written there.
 */
export const readSessions: StoreQuery<
  { readonly keys?: readonly string[]; readonly ids?: readonly string[]; readonly limit: number },
  readonly SessionSummary[]
> = {
  query: 'readSessions',
  run: async (tx, { keys, ids, limit }) => {
    let query = tx.db.selectFrom('sessions').selectAll().orderBy('updatedAt', 'desc').limit(limit);
    if (keys) query = query.where('key', 'in', keys);
    else if (ids) query = query.where('id', 'in', ids);
    else query = query.where('id', 'not like', 'title-%');
    return (await query.execute()).map(({ title, ...row }) => ({
      id: row.id,
      key: row.key,
      agentId: row.agentId,
      title: title ?? undefined,
      messageCount: row.messageCount,
      promptTokens: row.promptTokens,
      completionTokens: row.completionTokens,
      cost: row.cost,
      model: row.model ?? undefined,
      instructionTokens: row.instructionTokens,
      toolTokens: row.toolTokens,
      createdAt: row.createdAt,
      updatedAt: row.updatedAt,
    }));
  },
};

/** The state of a lane, for `/status` and `/queue`. */
export type LaneStatus = {
  readonly key: string;
  readonly sessionId: string;
  readonly mode: string;
  readonly debounceMs: number;
  readonly quietMs: number;
  readonly cap: number;
  readonly drop: string;
  /** Settings that `/queue` has set for this lane. */
  readonly overrides: Partial<QueueSettings>;
  readonly isRunning: boolean;
  readonly runId: string | undefined;
  readonly runStartedAt: number | undefined;
  /** Since when the run waits for something outside; undefined while it works. */
  readonly parkedAt: number | undefined;
  readonly waiting: number;
};

/** Reads a lane's state; undefined before its first message. */
export const readLaneStatus: StoreQuery<{ readonly laneKey: string }, LaneStatus | undefined> = {
  query: 'readLaneStatus',
  run: async (tx, { laneKey }) => {
    const lane = await tx.db.selectFrom('lanes').selectAll().where('key', '=', laneKey).executeTakeFirst();
    if (!lane) return undefined;
    const waiting = await tx.db
      .selectFrom('inbox')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .where('laneKey', '=', laneKey)
      .where(isOpenItem())
      .executeTakeFirst();
    const run =
      lane.runId === null ? undefined : await findRow(tx, 'runs', lane.runId, ['startedAt', 'parkedAt']);
    const { key, sessionId, mode, debounceMs, quietMs, cap, drop } = lane;
    return {
      key,
      sessionId,
      mode,
      debounceMs,
      quietMs,
      cap,
      drop,
      overrides: json.queueSettings(lane.overrides),
      isRunning: lane.runId !== null,
      runId: lane.runId ?? undefined,
      runStartedAt: run?.startedAt,
      parkedAt: run?.parkedAt ?? undefined,
      waiting: Number(waiting?.count ?? 0),
    };
  },
};

import { textOf } from '../../src/contracts/message.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';

/** The outcome of everything that entered one lane. */
export type LaneFacts = {
  readonly inbox: readonly {
    readonly seq: number;
    readonly messageId: string | null;
    readonly state: string;
    readonly outcome: string | null;
    readonly reason: string | null;
    readonly transcriptId: string | null;
  }[];
  /** The transcripts of its sessions without the answers, oldest first. */
  readonly told: readonly { readonly runId: string | null; readonly role: string; readonly text: string }[];
  readonly openRuns: number;
};

const facts: StoreQuery<{ readonly laneKey: string }, LaneFacts> = {
  query: 'laneFacts',
  run: async (tx, { laneKey }) => {
    const inbox = await tx.db
      .selectFrom('inbox')
      .select(['seq', 'messageId', 'state', 'outcome', 'outcomeReason as reason', 'transcriptId'])
      .where('laneKey', '=', laneKey)
      .orderBy('seq')
      .execute();
    const told = await tx.db
      .selectFrom('transcript')
      .innerJoin('sessions', 'sessions.id', 'transcript.sessionId')
      .select(['transcript.runId', 'transcript.role', 'transcript.parts'])
      .where('sessions.key', '=', laneKey)
      .where('transcript.role', 'in', ['user', 'system'])
      .orderBy('sessions.createdAt')
      .orderBy('transcript.position')
      .execute();
    const runs = await tx.db
      .selectFrom('runs')
      .select('id')
      // Runs have no index by lane, but each has taken an item.
      .where('id', 'in', (eb) => eb.selectFrom('inbox').select('runId').where('laneKey', '=', laneKey))
      .where('state', '<>', 'finished')
      .execute();
    return {
      inbox,
      told: told.map((row) => ({ runId: row.runId, role: row.role, text: textOf(json.parts(row.parts)) })),
      openRuns: runs.length,
    };
  },
};

export function readLane(store: Store, laneKey: string): Promise<LaneFacts> {
  return store.read(facts, { laneKey });
}

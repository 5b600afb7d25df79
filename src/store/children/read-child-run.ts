import { parseJson } from '#channel-kit/parse-json.ts';
import type { ChildRole, ForkPoint } from '#contracts/child.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { StoreQuery } from '../base/command.ts';

/** Everything that distinguishes a sub-agent's run from others. */
export type ChildRun = {
  readonly role: ChildRole;
  /** Where its history begins; undefined for an isolated one. */
  readonly fork: ForkPoint | undefined;
  /** By the database's clock, ms. */
  readonly deadlineAt: number;
};

/** Reads it by the sub-agent's session. Throws `internal` if that has no role, which would give it all rights. */
export const readChildRun: StoreQuery<{ readonly sessionId: string }, ChildRun> = {
  query: 'readChildRun',
  run: async (tx, { sessionId }) => {
    const row = await tx.db
      .selectFrom('sessions')
      .innerJoin('children', 'children.id', 'sessions.id')
      .select(['sessions.role', 'sessions.forkedFrom', 'children.deadlineAt'])
      .where('sessions.id', '=', sessionId)
      .executeTakeFirst();
    if (!row || row.role === null) throw new ParleyError('internal', `Sub-agent ${sessionId} has no role.`);
    // The store wrote both at the spawn.
    const fork = row.forkedFrom === null ? undefined : (parseJson(row.forkedFrom) as ForkPoint);
    return { role: parseJson(row.role) as ChildRole, fork, deadlineAt: row.deadlineAt };
  },
};

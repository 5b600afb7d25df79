/** Keeps the skills that a run began with, so that its next attempt has the same ones and the same prompt. */
import type { SkillSnapshot } from '#contracts/skill.ts';
import type { StoreCommand, StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';
import { ensureRow } from '../base/row-access.ts';
import { lockLaneAt } from '../rows/lane.ts';
import { keepRunSkills, type RunFence } from '../rows/run.ts';

/** Stores the skills of a run; the snapshot itself only once, for all runs that share it. Safe to repeat. */
export const keepSkills: StoreCommand<RunFence & { readonly snapshot: SkillSnapshot }, void> = {
  name: 'keepSkills',
  run: async (tx, { laneKey, epoch, runId, snapshot: { id, skills } }) => {
    await lockLaneAt(tx, laneKey, epoch);
    await ensureRow(tx, 'skillSnapshots', { id, data: JSON.stringify(skills) });
    await keepRunSkills(tx, runId, id);
  },
};

/** Reads the skills that a run began with; undefined if it had none. */
export const readRunSkills: StoreQuery<{ readonly runId: string }, SkillSnapshot | undefined> = {
  query: 'readRunSkills',
  run: async (tx, { runId }) => {
    const row = await tx.db
      .selectFrom('runs')
      .innerJoin('skillSnapshots', 'skillSnapshots.id', 'runs.skills')
      .select(['skillSnapshots.id', 'skillSnapshots.data'])
      .where('runs.id', '=', runId)
      .executeTakeFirst();
    return row && { id: row.id, skills: json.skills(row.data) };
  },
};

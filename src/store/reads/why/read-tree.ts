import type { Tx } from '../../base/command.ts';
import { excerptOf } from '../../base/one-line.ts';
import { withoutNulls } from '../../base/row-access.ts';

/** A sub-agent as shown by `why`. */
export type ChildFacts = Awaited<ReturnType<typeof readTree>>['children'][number];

/**
 * Follows runs through the sub-agents of their trees. The returned `runIds` are the given runs, all runs of their
 * trees, up and down, and the runs to which the children's ends were announced.
 */
export async function readTree(
  tx: Tx,
  runIds: readonly string[],
  { withExcerpts }: { readonly withExcerpts: boolean },
) {
  if (runIds.length === 0) return { children: [], runIds };
  const trees = await tx.db.selectFrom('runs').select('treeId').where('id', 'in', runIds).execute();
  const treeIds = [...new Set(trees.map(({ treeId }) => treeId))];
  if (treeIds.length === 0) return { children: [], runIds };
  const rows = await tx.db
    .selectFrom('children')
    .select(['id', 'depth', 'agentId', 'laneKey', 'parentRunId', 'parentCallId', 'mode', 'state'])
    .select(['status', 'told', 'promptTokens', 'completionTokens', 'cost', 'createdAt', 'endedAt'])
    .select(['label', 'task'])
    .where('treeId', 'in', treeIds)
    .orderBy('createdAt')
    .execute();
  if (rows.length === 0) return { children: [], runIds };
  const items = await tx.db
    .selectFrom('inbox')
    .select('runId')
    .where((eb) =>
      eb.or([
        eb(
          'laneKey',
          'in',
          rows.map(({ laneKey }) => laneKey),
        ),
        eb(
          'sourceKey',
          'in',
          rows.map(({ id }) => `child:${id}`),
        ),
      ]),
    )
    .execute();
  const all = [
    ...runIds,
    ...rows.map(({ parentRunId }) => parentRunId),
    ...items.flatMap(({ runId }) => runId ?? []),
  ];
  const children = rows.map(({ label, task, promptTokens, completionTokens, ...row }) => ({
    ...withoutNulls(row),
    tokens: promptTokens + completionTokens,
    ...(withExcerpts && { excerpt: excerptOf(label ?? task) }),
  }));
  return { children, runIds: [...new Set(all)] };
}

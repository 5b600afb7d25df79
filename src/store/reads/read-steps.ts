import { skipped } from '#contracts/message.ts';
import type { TimelineStep } from '#contracts/timeline.ts';
import type { Tx } from '../base/command.ts';

/** Reference to an answer: its run and its message in the transcript. */
export type AnswerRef = { readonly runId: string; readonly answer: string };

/** Maximum number of tool calls read for one page. */
const mostSteps = 1_000;

/** Reads the runs' ended tool calls, grouped by the answer that follows each. */
export async function readSteps(
  tx: Tx,
  answers: readonly AnswerRef[],
): Promise<ReadonlyMap<string, readonly TimelineStep[]>> {
  const steps = new Map<string, TimelineStep[]>();
  if (answers.length === 0) return steps;
  const calls = await tx.db
    .selectFrom('toolCalls')
    .innerJoin('transcript', 'transcript.id', 'toolCalls.messageId')
    .select(['toolCalls.runId', 'toolCalls.name', 'toolCalls.isError', 'transcript.position'])
    // Reads nothing else of a result, which may be 32 KB.
    .select((eb) =>
      eb
        .case()
        .when('toolCalls.result', 'like', `%"content":${JSON.stringify(skipped)}%`)
        .then(1)
        .else(0)
        .end()
        .as('isSkipped'),
    )
    .where('toolCalls.runId', 'in', [...new Set(answers.map(({ runId }) => runId))])
    .where('toolCalls.state', '=', 'done')
    .orderBy('transcript.position')
    .orderBy('toolCalls.ordinal')
    .limit(mostSteps)
    .execute();
  if (calls.length === 0) return steps;
  const placed = await tx.db
    .selectFrom('transcript')
    .select(['id', 'runId', 'position'])
    .where(
      'id',
      'in',
      answers.map(({ answer }) => answer),
    )
    .orderBy('position')
    .execute();
  for (const { runId, name, isError, isSkipped, position } of calls) {
    const next = placed.find((answer) => answer.runId === runId && answer.position > position);
    if (next === undefined) continue;
    const failed = isSkipped === 1 ? 'skipped' : 'failed';
    steps.set(next.id, [...(steps.get(next.id) ?? []), { name, state: isError === 1 ? failed : 'done' }]);
  }
  return steps;
}

import { type ReplyRoute, type RunTarget, routeOf } from '#contracts/route.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';

export type SeenQuestion = {
  readonly run: { readonly laneKey: string; readonly sessionId: string; readonly target: RunTarget };
  /** The platform's message id. */
  readonly messageId: string;
};

/** Says whether the message is in the conversation that the run answers, and its session has shown it to the model. */
export const readIsSeen: StoreQuery<SeenQuestion, boolean> = {
  query: 'readIsSeen',
  run: async (tx, { run, messageId }) => {
    const route = routeOf(run.target);
    if (!route) return false;
    const asked = { ...run, route, messageId };
    return (await wasTaken(tx, asked)) || (await wasContext(tx, asked));
  },
};

type SeenInput = Omit<SeenQuestion['run'], 'target'> & {
  readonly route: ReplyRoute;
  readonly messageId: string;
};

async function wasTaken(tx: Tx, { route, sessionId, messageId }: SeenInput): Promise<boolean> {
  const taken = await tx.db
    .selectFrom('inbox')
    .innerJoin('transcript', 'transcript.id', 'inbox.transcriptId')
    .select('inbox.id')
    .where('inbox.conversationKey', '=', conversationKeyOf(route))
    .where('inbox.messageId', '=', messageId)
    .where('transcript.sessionId', '=', sessionId)
    .executeTakeFirst();
  return taken !== undefined;
}

/** Finds group messages that didn't address the agent: they are shown once, together with one that did. */
async function wasContext(tx: Tx, { route, laneKey, sessionId, messageId }: SeenInput): Promise<boolean> {
  const shown = await tx.db
    .selectFrom('groupContext')
    .innerJoin('runs', 'runs.id', 'groupContext.shownInRun')
    .select('groupContext.seq')
    .where('groupContext.laneKey', '=', laneKey)
    .where('groupContext.messageId', '=', messageId)
    .where('groupContext.conversationKey', '=', conversationKeyOf(route))
    .where('runs.sessionId', '=', sessionId)
    .executeTakeFirst();
  return shown !== undefined;
}

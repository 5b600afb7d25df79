import { type ReplyRoute, type RunTarget, routeOf } from '#contracts/route.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { conversationKeyOf } from '../base/keys.ts';

/** A message on its platform. */
export type MessagePlace = { readonly conversationKey: string; readonly messageId: string };

/** Says for each of these messages, in order, whether the bot sent it, as far as receipts show. */
export const readOwnMessages: StoreQuery<{ readonly places: readonly MessagePlace[] }, readonly boolean[]> = {
  query: 'readOwnMessages',
  run: async (tx, { places }) => {
    const own: boolean[] = [];
    for (const place of places) own.push((await readPartKey(tx, place)) !== undefined);
    return own;
  },
};

/** Reads the key of the part that was sent as this message; undefined if the bot didn't send it. */
export async function readPartKey(
  tx: Tx,
  { conversationKey, messageId }: MessagePlace,
): Promise<string | undefined> {
  const receipt = await tx.db
    .selectFrom('receipts')
    .select('partKey')
    .where('conversationKey', '=', conversationKey)
    .where('messageId', '=', messageId)
    .executeTakeFirst();
  return receipt?.partKey;
}

/** Network message ids, by the transcript message that took them or was sent as them. */
export type MessageIds = ReadonlyMap<string, readonly string[]>;

/** Reads the network ids of transcript messages: of people's messages and of sent answers. */
export const readMessageIds: StoreQuery<{ readonly ids: readonly string[] }, MessageIds> = {
  query: 'readMessageIds',
  run: async (tx, { ids }) => {
    if (ids.length === 0) return new Map();
    const runs = tx.db.selectFrom('transcript').select('runId').where('id', 'in', ids);
    const heard = await tx.db
      .selectFrom('inbox')
      .select(['transcriptId', 'messageId'])
      .where('runId', 'in', runs)
      .where('transcriptId', 'in', ids)
      .orderBy('seq')
      .execute();
    const sent = await tx.db
      .selectFrom('outbox')
      .select(['answer', 'receipts'])
      .where('runId', 'in', runs)
      .where('answer', 'in', ids)
      .where('purpose', '=', 'reply')
      .where('state', '=', 'sent')
      .orderBy('place')
      .execute();
    const named = [
      ...heard.map(({ transcriptId, messageId }) => ({
        of: transcriptId,
        names: messageId ? [messageId] : [],
      })),
      ...sent.map(({ answer, receipts }) => ({ of: answer, names: json.strings(receipts) })),
    ];
    return new Map(
      [...Map.groupBy(named, ({ of }) => of ?? '')].map(([id, all]) => [
        id,
        all.flatMap(({ names }) => names),
      ]),
    );
  },
};

type SeenQuestion = {
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

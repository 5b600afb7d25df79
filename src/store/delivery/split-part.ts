/**
 * Splits a message with files that its network refused: an album into its files, so that a bad one costs only itself,
 * and a caption from its file, so that a refused file doesn't cost the text. Each becomes a part of its own.
 */
import { filesOf, type OutboundContent, type OutboundMedia, withFiles } from '#contracts/outbound.ts';
import { withoutQuote } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { changeRow, plus, readRow } from '../base/row-access.ts';
import { takeSeq } from '../rows/lane.ts';
import { returnPart, writePart } from './part.ts';

type RefusedPart = { readonly partKey: string; readonly problem: string };

/**
 * Leaves the part its first file, due now, and adds a part for each other one behind it. Returns false if the part isn't
 * an album. The caller holds the locks of its lane and its conversation.
 */
export async function splitAlbum(tx: Tx, { partKey, problem }: RefusedPart): Promise<boolean> {
  const part = await readPart(tx, partKey);
  const [first, ...others] = part.media ? filesOf(part.media) : [];
  if (!part.media || first === undefined || others.length === 0) return false;
  const { caption: _, ...uncaptioned } = part.media;
  const more = others.map((file, index) => ({
    key: `${partKey}:file:${index + 1}`,
    content: withFiles(uncaptioned, [file]),
  }));
  await addParts(tx, part, { parts: more, isQuoting: false });
  await changeRow(tx, 'outbox', partKey, { content: JSON.stringify(withFiles(part.media, [first])) });
  await returnPart(tx, { partKey, dueAt: tx.now, problem, mayHaveArrivedSince: undefined });
  return true;
}

/**
 * Adds the caption of an answer's file, which is about to end as failed, as a text. A tool is told instead, and the
 * agent decides. The caller holds the locks of its lane and its conversation.
 */
export async function keepCaption(tx: Tx, partKey: string): Promise<void> {
  const part = await readPart(tx, partKey);
  if (part.purpose !== 'reply' || !part.media?.caption) return;
  const { caption, ...uncaptioned } = part.media;
  const text: OutboundContent = { kind: 'text', text: caption };
  await addParts(tx, part, { parts: [{ key: `${partKey}:text`, content: text }], isQuoting: true });
  // If the operator has the file sent after all, the text isn't sent again.
  await changeRow(tx, 'outbox', partKey, { content: JSON.stringify(uncaptioned) });
}

type SplitPart = Awaited<ReturnType<typeof readPart>>;

async function readPart(tx: Tx, key: string) {
  const row = await readRow(tx, 'outbox', key, [
    ...(['content', 'route', 'place', 'laneKey', 'runId', 'answer', 'purpose', 'conversationKey'] as const),
  ]);
  const content = json.outbound(row.content);
  const media: OutboundMedia | undefined = content.kind === 'media' ? content : undefined;
  return { ...row, media };
}

type AddedParts = {
  readonly parts: readonly { readonly key: string; readonly content: OutboundContent }[];
  /** Whether they quote what the part quotes. */
  readonly isQuoting: boolean;
};

/** Adds parts of the same answer directly behind the part. */
async function addParts(tx: Tx, part: SplitPart, { parts, isQuoting }: AddedParts): Promise<void> {
  const { conversationKey, place, laneKey, runId, answer, purpose } = part;
  await tx.db
    .updateTable('outbox')
    .set((eb) => ({ place: eb('place', '+', parts.length) }))
    .where('conversationKey', '=', conversationKey)
    .where(isOpenPart())
    .where('place', '>', place)
    .execute();
  await changeRow(tx, 'conversations', conversationKey, { nextPart: plus(parts.length) });
  const route = json.route(part.route);
  for (const [index, added] of parts.entries()) {
    const timeline = laneKey === null ? {} : { timeline: { laneKey, seq: await takeSeq(tx, laneKey) } };
    const of = { ...(runId !== null && { runId }), ...(answer !== null && { answer }), ...timeline };
    const own = {
      route: isQuoting ? route : withoutQuote(route),
      purpose: purpose === 'preview' ? 'notice' : purpose,
    };
    const at = { route: own.route, conversationKey, place: place + 1 + index, state: 'pending' } as const;
    await writePart(tx, { ...added, ...own, ...of } as const, at);
  }
}

import type { AskedCommand } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { takeSeq } from '../rows/lane-row.ts';
import { insertPart } from './insert-part.ts';

export type NewNotice = {
  readonly key: string;
  readonly route: ReplyRoute;
  readonly text: string;
  /** The command that it answers. */
  readonly asked?: AskedCommand | undefined;
  /** Shows the notice in this lane's timeline. The caller has locked the lane. */
  readonly laneKey?: string;
  /** The run that it is about. */
  readonly runId?: string;
};

/** Queues one of Parley's own texts; returns its conversation's key. Safe to repeat: a key is sent once. */
export async function insertNotice(tx: Tx, { text, laneKey, asked, ...notice }: NewNotice): Promise<string> {
  const timeline = laneKey === undefined ? {} : { timeline: { laneKey, seq: await takeSeq(tx, laneKey) } };
  const content = { kind: 'text', text: { text, spans: [] }, ...(asked && { asked }) } as const;
  return insertPart(tx, { ...notice, content, purpose: 'notice', ...timeline });
}

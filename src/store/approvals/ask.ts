/** Asks a question in a conversation, and shows there who decided it. */
import { plainText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import type { Button } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { changePart } from '../delivery/edit-part.ts';
import { insertPart } from '../delivery/insert-part.ts';

/** An answer to a question. */
export type Verdict = 'approve' | 'deny';

export type Question = {
  readonly id: string;
  readonly route: ReplyRoute;
  readonly text: string;
  /** The answers to offer, with their labels. */
  readonly choices: readonly { readonly verdict: Verdict; readonly label: string }[];
  /** Shows the question in a session's timeline. The caller has locked the lane. */
  readonly timeline?: { readonly laneKey: string; readonly seq: number };
};

/** Stores the question's message; returns its conversation's key. Safe to repeat: a question has one message. */
export async function askQuestion(tx: Tx, question: Question): Promise<string> {
  const { id, route, text, choices, timeline } = question;
  const buttons = choices.map(
    ({ verdict, label }): Button => ({
      id: buttonId(id, verdict),
      label,
      command: `/${verdict} ${id}`,
    }),
  );
  const content = { kind: 'text', text: plainText(text), buttons } as const;
  return insertPart(tx, {
    key: partKeyOf(id),
    route,
    content,
    purpose: 'notice',
    ...(timeline && { timeline }),
  });
}

/**
 * Replaces the question with its result, wherever it was asked; returns the conversation to deliver in. `pressed`: the
 * platform id of the message whose button decided.
 */
export function tellResult(
  tx: Tx,
  {
    id,
    text,
    pressed,
  }: { readonly id: string; readonly text: string; readonly pressed?: MessageId | undefined },
): Promise<string | undefined> {
  return changePart(tx, { key: partKeyOf(id), text, messageId: pressed });
}

/** Returns the id of the button that gives this answer to the question. */
function buttonId(id: string, verdict: Verdict): string {
  return `a:${id}:${verdict === 'approve' ? 'y' : 'n'}`;
}

/** Returns the question and answer that a button id encodes; undefined for any other id. */
export function readButton(data: string): { readonly id: string; readonly verdict: Verdict } | undefined {
  const [, id, answer] = /^a:([a-z0-9]{1,32}):([yn])$/.exec(data) ?? [];
  return id === undefined ? undefined : { id, verdict: answer === 'y' ? 'approve' : 'deny' };
}

function partKeyOf(id: string): string {
  return `approval:${id}`;
}

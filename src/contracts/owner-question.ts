import type { PressResult } from './acceptance.ts';

/** A question to the owner as the page shows it. */
export type ShownQuestion = {
  readonly id: string;
  readonly text: string;
  /** When it was asked, ms since the epoch. */
  readonly since: number;
  readonly choices: readonly { readonly verdict: 'approve' | 'deny'; readonly label: string }[];
};

/** The result of an answer, with a text for people. */
export type AnswerResult = { readonly result: PressResult; readonly text: string };

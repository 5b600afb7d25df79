/** The owner's open notices and questions, for the page's banner and the command line. */
import { z } from 'zod';
import type { AnswerResult, ShownAlert, ShownQuestion } from '#contracts/owner-alert.ts';
import { operation, Refusal } from './operation.ts';

export type NoticesDeps = { readonly owner: OwnerNotices };

export type OwnerNotices = {
  /** Returns the open notices that weren't dismissed, newest first. */
  shown(): Promise<readonly ShownAlert[]>;
  /** Returns false when there is no such notice. */
  dismiss(id: string): Promise<boolean>;
  /** Returns the open questions, newest first. */
  questions(): Promise<readonly ShownQuestion[]>;
  /** Answers a question as the owner; a later answer changes nothing and says so. */
  answer(id: string, given: z.output<typeof verdict>): Promise<AnswerResult>;
};

const id = z.string().min(1).max(100);
const verdict = z.enum(['approve', 'always', 'deny']);

/** Lists what the owner may have to act on. */
export const listNotices = operation({
  name: 'notices',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: "Lists the owner's open notices and questions, newest first",
  answer: z.object({
    notices: z
      .array(
        z.object({
          id: z.string(),
          kind: z.string(),
          text: z.string(),
          count: z.int(),
          since: z.int(),
          lastAt: z.int(),
        }),
      )
      .readonly(),
    questions: z
      .array(
        z.object({
          id: z.string(),
          text: z.string(),
          since: z.int(),
          choices: z.array(z.object({ verdict, label: z.string() })).readonly(),
        }),
      )
      .readonly(),
  }),
  run: async ({ owner }: NoticesDeps) => ({
    notices: await owner.shown(),
    questions: await owner.questions(),
  }),
});

export const dismissNotice = operation({
  name: 'notices/dismiss',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  summary: 'Removes a notice from the lists',
  input: z.strictObject({ id }),
  answer: z.object({ status: z.literal('dismissed') }),
  refusals: ['not_found'],
  run: async ({ owner }: NoticesDeps, notice) =>
    (await owner.dismiss(notice.id)) ? { status: 'dismissed' as const } : new Refusal('not_found'),
});

export const answerQuestion = operation({
  name: 'notices/answer',
  method: 'POST',
  right: 'owner',
  summary: 'Answers a question as the owner; the first of several answers counts',
  input: z.strictObject({ id, verdict }),
  answer: z.object({
    result: z.enum(['approved', 'denied', 'late', 'foreign', 'unknown']),
    text: z.string(),
  }),
  run: ({ owner }: NoticesDeps, given) => owner.answer(given.id, given.verdict),
});

/** Calls that wait for a person's approval, and calls that people have allowed for longer. */
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { stripText } from '../logging/redaction.ts';
import { decideOnPage } from '../store/access/decide-approval.ts';
import { isCallApproval, readOpenCallApprovals } from '../store/approvals/call-approval.ts';
import { readGrants, revokeGrant } from '../store/approvals/grant.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import { type ChangeDeps, operation, Refusal, type StoreDeps } from './operation.ts';

export type ApprovalsDeps = ChangeDeps & { readonly texts: ChatTexts };

const listed = 200;
const id = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9]{1,32}$/, 'An id has letters and digits only.');

export const listApprovals = operation({
  name: 'approvals',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Lists calls that wait for an approval, and calls that are allowed for longer, newest first',
  answer: z.object({
    open: z
      .array(
        z.object({
          id: z.string(),
          tool: z.string(),
          shown: z.string().describe('What the call would do'),
          runId: z.string(),
          laneKey: z.string(),
          askers: z.array(z.string()).readonly().describe('Whose messages led to it'),
          createdAt: z.int(),
          expiresAt: z.int(),
        }),
      )
      .readonly(),
    grants: z
      .array(
        z.object({
          id: z.string(),
          tool: z.string(),
          shown: z.string(),
          laneKey: z.string(),
          grantedBy: z.string(),
          expiresAt: z.int(),
        }),
      )
      .readonly(),
  }),
  run: async ({ store }: StoreDeps) => {
    const open = await store.read(readOpenCallApprovals, { limit: listed, isDue: false });
    return {
      open: open.map(({ id, tool, shown, runId, laneKey, askers, createdAt, expiresAt }) => ({
        ...{ id, tool, shown, runId, laneKey, createdAt, expiresAt },
        // Written by `askAboutCalls`.
        askers: JSON.parse(askers) as readonly string[],
      })),
      grants: await store.read(readGrants, {}),
    };
  },
});

/** Decides about a call. */
export const answerApproval = operation({
  name: 'approvals/answer',
  method: 'POST',
  right: 'operator',
  summary: 'Approves a call, or denies it; the first of several answers counts',
  input: z.strictObject({ id, verdict: z.enum(['approve', 'always', 'deny']) }),
  answer: z.object({ id: z.string(), text: z.string() }),
  refusals: ['not_found', 'not_possible'],
  run: async (deps: ApprovalsDeps, { id, verdict }, { by }) => {
    const { store, texts } = deps;
    // Requests for access have commands of their own, which also make the first owner.
    if (!(await store.read(isCallApproval, { id }))) return unknown(id, 'question');
    const decider = { ref: by, label: texts.whoAtConsole, isOwner: true, role: 'user' } as const;
    const { decided, effects } = await store.write(decideOnPage, { id, verdict, by: decider });
    deps.start(effects);
    const isDecided = decided.kind === 'approved' || decided.kind === 'denied';
    return isDecided ? { id, text: decided.text } : new Refusal('not_possible', decided.text);
  },
});

export const endGrant = operation({
  name: 'approvals/revoke',
  method: 'POST',
  right: 'owner',
  summary: 'Asks again about a call that was allowed for longer',
  input: z.strictObject({ id }),
  answer: z.object({ id: z.string() }),
  refusals: ['not_found'],
  run: async ({ store }: ApprovalsDeps, { id }, { by }) =>
    (await store.write(revokeGrant, { id, by })) ? { id } : unknown(id, 'permission'),
});

function unknown(id: string, noun: string): Refusal {
  return new Refusal(
    'not_found',
    `There is no ${noun} ${stripText(id)}. See: ${parleyCommand} approvals list`,
  );
}

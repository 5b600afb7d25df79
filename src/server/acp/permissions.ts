/** Asks the editor about calls of its conversation that wait for an approval, each question once. */
import type { AgentContext, PermissionOption, RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { topLaneOf } from '#contracts/session-key.ts';
import { answerApproval } from '../../operations/approvals.ts';
import type { GatewayDeps } from '../../operations/list.ts';
import type { Caller } from '../../operations/operation.ts';
import { type CallApproval, readOpenCallApprovals } from '../../store/approvals/call-approval.ts';
import { kindOf, type TurnUpdates, textContent } from './turn-updates.ts';

const options: readonly PermissionOption[] = [
  { optionId: 'approve', name: 'Allow', kind: 'allow_once' },
  { optionId: 'always', name: 'Allow from now on', kind: 'allow_always' },
  { optionId: 'deny', name: 'Deny', kind: 'reject_once' },
];

export type PermissionDeps = {
  readonly gateway: GatewayDeps;
  readonly caller: Caller;
  readonly client: AgentContext;
  readonly sessionId: string;
  readonly laneKey: string;
  readonly updates: TurnUpdates;
};

/** How many questions are read; more are never open at once. */
const maxQuestions = 200;
/** How often the store is read, in case an event is lost, ms. */
const lookMs = 3_000;

/** Looks for questions whenever `look` is called, and at intervals, until the caller's signal aborts. */
export function watchPermissions(deps: PermissionDeps): { look(): void } {
  const { gateway, caller, laneKey } = deps;
  const asked = new Set<string>();
  const look = async () => {
    if (caller.signal.aborted) return;
    const open = await gateway.store.read(readOpenCallApprovals, { limit: maxQuestions, isDue: false });
    const own = open.filter((one) => topLaneOf(one.laneKey) === laneKey && !asked.has(one.id));
    for (const { id } of own) asked.add(id);
    await Promise.all(own.map((question) => ask(deps, question)));
  };
  const begin = () => {
    look().catch((error: unknown) => {
      // The question stays open on the page and in the owner's chat.
      if (!caller.signal.aborted) gateway.log.warn({ error, laneKey }, 'acp.question-failed');
    });
  };
  const timer = setInterval(begin, lookMs).unref();
  caller.signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  begin();
  return { look: begin };
}

async function ask(
  { gateway, caller, client, sessionId, updates }: PermissionDeps,
  { id, callId, tool, shown }: CallApproval,
): Promise<void> {
  await updates.ask(callId, tool);
  const toolCall = { toolCallId: callId, title: tool, kind: kindOf(tool), status: 'pending' } as const;
  const question: RequestPermissionRequest = {
    sessionId,
    options: [...options],
    toolCall: { ...toolCall, content: [textContent(shown)] },
  };
  const waiting = { cancellationSignal: caller.signal, stopWaitingOnCancel: true };
  const { outcome } = await client.request('session/request_permission', question, waiting);
  const verdict = options.find(
    ({ optionId }) => outcome.outcome === 'selected' && optionId === outcome.optionId,
  );
  if (verdict === undefined) return;
  // Somebody may have answered elsewhere meanwhile; the first answer counts.
  await answerApproval.run(
    gateway,
    { id, verdict: verdict.optionId as 'approve' | 'always' | 'deny' },
    caller,
  );
}

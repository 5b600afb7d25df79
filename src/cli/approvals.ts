import { localTime } from '#channel-kit/time-text.ts';
import * as approvals from '../operations/approvals.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';

/** Lists calls that wait for an approval, and calls that are allowed for longer. */
export async function listApprovals(): Promise<CommandOutput> {
  const result = await callOperation(approvals.listApprovals, {});
  const open = result.open.map(
    ({ id, tool, expiresAt, shown }) => `${id}  ${tool} waits until ${localTime(expiresAt)}: ${shown}`,
  );
  const grants = result.grants.map(
    ({ id, tool, expiresAt, shown, grantedBy, laneKey }) =>
      `${id}  ${tool} is allowed until ${localTime(expiresAt)} in ${laneKey}, by ${grantedBy}: ${shown}`,
  );
  const lines = [...open, ...grants].map((line) => line.replaceAll('\n', ' '));
  return {
    result,
    lines: lines.length === 0 ? ['Nothing needs an approval, and nothing is allowed for longer.'] : lines,
  };
}

export async function answer(id: string, verdict: 'approve' | 'always' | 'deny'): Promise<CommandOutput> {
  const result = await callOperation(approvals.answerApproval, { id, verdict });
  return { result, lines: [result.text] };
}

export async function revoke(id: string): Promise<CommandOutput> {
  const result = await callOperation(approvals.endGrant, { id });
  return { result, lines: [`${result.id} isn’t allowed any longer; Parley asks again.`] };
}

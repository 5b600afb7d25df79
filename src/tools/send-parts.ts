// Sends parts for tools and waits for their end.

import { ParleyError } from '#contracts/errors.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { ToolContext, ToolRun } from '#contracts/tool.ts';
import type { ToolSendEnd, ToolSender } from '../outbox/tool-sender.ts';
import type { ToolSendInput } from '../store/delivery/tool-send.ts';

export type SendingCall = {
  readonly toolSender: ToolSender;
  readonly run: ToolRun;
  readonly ctx: ToolContext;
  readonly route: ReplyRoute;
  /** Another session to speak in. */
  readonly toLane?: string | undefined;
};

export type PartsToSend = Pick<ToolSendInput, 'contents' | 'quotes' | 'changesOwnOnly'>;
export type SendEnd = Omit<ToolSendEnd, 'state'> & { readonly state: 'sent' | 'unknown' | 'failed' };

/** Stores the parts under the call's own key and waits for their end. A repeated call finds those it has made. */
export async function sendParts(
  { toolSender, run, route, toLane, ctx }: SendingCall,
  posting: PartsToSend,
): Promise<SendEnd> {
  const { sessionKey: laneKey, epoch } = run;
  const target = { laneKey, epoch, ...callOf({ run, ctx }), route, ...(toLane !== undefined && { toLane }) };
  const posted = await toolSender.send({ ...target, ...posting }, ctx.signal);
  const state = posted.state === 'sent' || posted.state === 'failed' ? posted.state : 'unknown';
  return { ...posted, state };
}

/** Names the parts of a call. */
export function callOf({
  run: { runId },
  ctx,
}: Pick<SendingCall, 'run' | 'ctx'>): Pick<ToolSendInput, 'runId' | 'key'> {
  return { runId, key: `${runId}:tool:${ctx.callId}` };
}

/** `current` is a message of this conversation only; the store knows which one is the last. */
export function readReference(
  named: string,
  { run, toLane }: Pick<SendingCall, 'run' | 'toLane'>,
): MessageId {
  if (named !== 'current') return messageId(named);
  if (toLane === undefined && run.route?.replyTo !== undefined) return run.route.replyTo;
  throw refused('There is no current message there; name it by its id.');
}

export function refused(message: string): ParleyError {
  return new ParleyError('tool_failed', message);
}

/** Some models fill in every argument they don't use. */
export function withoutEmpty(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw;
  return Object.fromEntries(Object.entries(raw).filter(([, value]) => !isEmpty(value)));
}

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** Sub-agents as text, one line each, for the terminal chat and for lists. */
import type { ChildView } from '#contracts/child.ts';

/** Returns `sub-agent “research”: done in 12 s, 3400 tokens`. */
export function childLine(child: ChildView): string {
  return `${indent(child)}sub-agent “${child.name}”: ${factsOf(child)}`;
}

function factsOf(child: ChildView): string {
  if (child.state !== 'done') return child.state;
  const done = child.status === 'completed' || child.status === undefined ? 'done' : child.status;
  const tokens = `${child.tokens} ${child.tokens === 1 ? 'token' : 'tokens'}`;
  return child.startedAt === undefined ? done : `${done} in ${durationOf(child, Date.now())}, ${tokens}`;
}

function indent({ depth }: ChildView): string {
  return '  '.repeat(depth - 1);
}

type Times = { readonly startedAt?: number | undefined; readonly endedAt?: number | undefined };

/** Returns the time from the first claim to the end, or until `now` (ms). */
export function durationOf({ startedAt, endedAt }: Times, now: number): string {
  if (startedAt === undefined) return '–';
  const seconds = Math.max(0, Math.round(((endedAt ?? now) - startedAt) / 1000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

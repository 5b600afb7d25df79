/**
 * How alerts are named in the store. 0.2.0 fails at a kind that it doesn't know, and from then on tells its owner
 * nothing. After a way back it must find none, so newer kinds are stored under one that it ends by itself at its start:
 * a full context of an agent that doesn't exist. This version skips the kinds that a later one may store.
 */
import { type Alert, type AlertKind, isAlertKind } from '#contracts/owner-alert.ts';

/** Kind and subject of an alert, which identify it. */
export type AlertName = Pick<Alert, 'kind' | 'subject'>;

const standIn = 'context-full';
const newerKinds = ['model-window', 'model-cache', 'part-failing'] as const satisfies readonly AlertKind[];

/** Returns the name under which an alert is stored. */
export function storedName({ kind, subject }: AlertName): AlertName {
  const isNewer = newerKinds.some((each) => each === kind);
  return isNewer ? { kind: standIn, subject: `${kind} ${subject}` } : { kind, subject };
}

/** Returns an alert's own name from the stored one; undefined for the kind of a later version. */
export function nameOfStored({ kind, subject }: AlertName): AlertName | undefined {
  if (!isAlertKind(kind)) return undefined;
  const newer = kind === standIn ? newerKinds.find((each) => subject.startsWith(`${each} `)) : undefined;
  return newer === undefined ? { kind, subject } : { kind: newer, subject: subject.slice(newer.length + 1) };
}

import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { PartFacts } from '../store/reads/why/read-parts.ts';
import { type Fact, timeOf } from './fact-lines.ts';

/** Tells a part's state, at the time of its end. */
export function partFact(part: PartFacts): Fact {
  const { key, purpose, conversationKey, createdAt, endedAt, excerpt, attempts } = part;
  const words = excerpt === undefined ? '' : ` “${excerpt}”`;
  const tried = attempts > 1 ? `, ${attempts} attempts` : '';
  return {
    at: endedAt ?? createdAt,
    text: `${purpose} ${key} to ${conversationKey}: ${part.purpose === 'preview' ? previewState(part) : stateOf(part)}${tried}${words}`,
  };
}

function stateOf({ state, messageIds, dueAt, askedToWait: asked, problem }: PartFacts): string {
  const reason = problem === undefined ? '' : ` (${problem})`;
  switch (state) {
    case 'sent':
      return messageIds.length === 0 ? 'sent' : `sent as ${messageIds.join(', ')}`;
    case 'pending':
      return `to be sent at ${timeOf(dueAt)}${asked === undefined ? '' : waitOf(asked)}${reason}`;
    case 'sending':
      return `being sent${reason}`;
    case 'unknown':
      return `unknown${reason}: it may or may not have arrived`;
    case 'failed':
      return `failed${reason}`;
    default:
      return state satisfies never;
  }
}

/** A preview is no message of its own: its answer takes its place, unless nobody knows its id. */
function previewState({ state, messageIds, endedAt, problem }: PartFacts): string {
  if (state === 'failed') return `failed (${problem})`;
  const as = messageIds.length === 0 ? '' : ` as ${messageIds.join(', ')}`;
  if (endedAt !== undefined) return `sent${as}; its answer took its place, or removed it`;
  if (state === 'unknown') return 'unknown: it may stay in the chat beside the answer';
  return `sent${as}, shown while the answer is written`;
}

/** The platform is asked again when the part is due, however long it said. */
function waitOf({ since, until }: NonNullable<PartFacts['askedToWait']>): string {
  return `; its platform has asked to wait since ${timeOf(since)}, now until ${timeOf(until)}`;
}

/** The command for each part that an operator may send once more. */
export function nextSteps(parts: readonly PartFacts[]): readonly string[] {
  return parts
    .filter(({ state, purpose }) => (state === 'unknown' || state === 'failed') && purpose !== 'preview')
    .map(({ key, state }) => {
      const twice = state === 'unknown' ? ' (it may then arrive twice)' : '';
      return `to send it again${twice}: ${parleyCommand} outbox retry ${key}`;
    });
}

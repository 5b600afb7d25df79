import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { PartFacts } from '../store/reads/why/read-parts.ts';
import { type Fact, timeOf } from './fact-lines.ts';

/** Describes a part's state, at the time it ended. */
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

/** Describes a preview, which isn't a message of its own: its answer replaces it, unless its id is unknown. */
function previewState({ state, messageIds, endedAt, problem }: PartFacts): string {
  if (state === 'failed') return `failed (${problem})`;
  const as = messageIds.length === 0 ? '' : ` as ${messageIds.join(', ')}`;
  if (endedAt !== undefined) return `sent${as}; later replaced or removed by its answer`;
  if (state === 'unknown') return 'unknown: it may remain in the chat next to the answer';
  return `sent${as}, shown while the answer is written`;
}

/** Says how long the platform wants Parley to wait; it is asked again when the part is due, whatever it said. */
function waitOf({ since, until }: NonNullable<PartFacts['askedToWait']>): string {
  return `; its platform has been asking for a delay since ${timeOf(since)}, now until ${timeOf(until)}`;
}

/** Returns the command for each part that an operator may send again. */
export function nextSteps(parts: readonly PartFacts[]): readonly string[] {
  return parts
    .filter(({ state, purpose }) => (state === 'unknown' || state === 'failed') && purpose !== 'preview')
    .map(({ key, state }) => {
      const twice = state === 'unknown' ? ' (it may then arrive twice)' : '';
      return `to send it again${twice}: ${parleyCommand} outbox retry ${key}`;
    });
}

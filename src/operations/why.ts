import { z } from 'zod';
import { localTime } from '#channel-kit/time-text.ts';
import { stripText } from '../logging/redaction.ts';
import type { RecordTrace } from '../store/reads/why/read-record.ts';
import { readWhy } from '../store/reads/why/read-why.ts';
import type { MessageTrace } from '../store/reads/why/trace.ts';
import { operation, Refusal, type StoreDeps } from './operation.ts';

export type WhyDeps = StoreDeps & {
  /** Removes every known secret from a text. */
  redact(text: string): string;
  readonly render: { trace(trace: MessageTrace): string; record(record: RecordTrace): string };
};

const understood = `These ids are understood:
  a message: 45, or with its conversation telegram:-100123/45
  what a message led to: events, items, runs (also as trace ids), messages of the transcript, parts, sub-agents, tasks
  a tool call: <run>/<call>; a recent one also by its own id
  a question: its id, or the code that the person was shown
  people (telegram:123), sessions and session keys, conversations, bot accounts, processes
  sign-ins, tokens and alerts; a name given with “agent --key”
Sign-ins that have ended and processes that are gone leave no record.`;

/**
 * Traces a received message to its outcome, or a sent one to the message it answers, and shows the record of anything
 * else that Parley gives an id.
 */
export const why = operation({
  name: 'why',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Says what became of a message, or what any other id refers to, as lines of text',
  input: z.object({
    id: z.string().min(1).max(300).describe('Any id that Parley or the network gave it'),
    withText: z.stringbool().default(false).describe('Includes the beginning of each text'),
  }),
  answer: z.object({ text: z.string(), record: z.looseObject({}).describe('The same for programs') }),
  refusals: ['not_found', 'ambiguous'],
  run: async ({ store, redact, render }: WhyDeps, { id, withText }) => {
    const clean = (text: string, record: object) => ({
      text: redact(stripText(text)),
      record: JSON.parse(redact(stripText(JSON.stringify(record)))) as Record<string, unknown>,
    });
    const found = await store.read(readWhy, { id, withExcerpts: withText });
    switch (found.kind) {
      case 'account':
        return clean(render.trace(found.account), found.account);
      case 'record':
        return clean(render.record(found.record), found.record);
      case 'several': {
        const lines = found.candidates.map(({ name, what, at }) => `  ${name}  ${what} ${localTime(at)}`);
        const names = stripText([`${id} has several meanings. Give one of these ids:`, ...lines].join('\n'));
        return new Refusal('ambiguous', names);
      }
      case 'unknown':
        return new Refusal('not_found', `No record of ${stripText(id)}.\n${understood}`);
      default:
        return found satisfies never;
    }
  },
});

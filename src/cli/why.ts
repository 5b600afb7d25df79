import { localTime } from '#channel-kit/time-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import { secretsOf } from '../config/secrets-of.ts';
import { createRedactor, stripText } from '../logging/redaction.ts';
import { readWhy } from '../store/reads/why/read-why.ts';
import type { ExitCode } from './exit-code.ts';
import { configForReading } from './readable-config.ts';
import { renderRecord } from './render-record.ts';
import { renderTrace } from './render-trace.ts';
import { withStore } from './with-store.ts';

export type WhyOptions = { readonly id: string; readonly asJson: boolean; readonly withText: boolean };

const understood = `These ids are understood:
  a message: 45, or with its conversation telegram:-100123/45
  what a message led to: events, items, runs (also as trace ids), messages of the transcript, parts, sub-agents
  a tool call: <run>/<call>; a recent one also by its own id
  a question: its id, or the code that the person was shown
  people (telegram:123), sessions and session keys, conversations, bot accounts, processes
  sign-ins and alerts; a name given with “agent --key”
Sign-ins that have ended and processes that are gone leave no record.`;

/**
 * Traces a received message to its outcome, or a sent one to the message it answers, and shows the record of anything
 * else that Parley gives an id. Throws `invalid_input` for an unknown id.
 */
export async function runWhy({ id, asJson, withText }: WhyOptions): Promise<ExitCode> {
  const config = configForReading();
  const why = await withStore((store) => store.read(readWhy, { id, withExcerpts: withText }), config);
  const { redact } = createRedactor(secretsOf(config));
  switch (why.kind) {
    case 'account':
      print(asJson ? JSON.stringify(why.account, undefined, 2) : renderTrace(why.account), redact);
      return 0;
    case 'record':
      print(asJson ? JSON.stringify(why.record, undefined, 2) : renderRecord(why.record), redact);
      return 0;
    case 'several': {
      const lines = why.candidates.map(({ name, what, at }) => `  ${name}  ${what} ${localTime(at)}`);
      throw new ParleyError(
        'invalid_input',
        `${id} has several meanings. Give one of these ids:\n${stripText(lines.join('\n'))}`,
      );
    }
    case 'unknown':
      throw new ParleyError('invalid_input', `No record of ${stripText(id)}.\n${understood}`);
    default:
      return why satisfies never;
  }
}

function print(text: string, redact: (text: string) => string): void {
  process.stdout.write(`${redact(stripText(text))}\n`);
}

/**
 * The report on a crowd at rest: every message is in the transcript once, in the order in which its
 * person said it, with one outcome, and its answer is in the chat once or is reported as `unknown`.
 */
import type { AnthropicServer } from '../platforms/anthropic/server.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import { findBreachesIn, quoted, type Read } from './conservation.ts';
import { answerTo, shownTwice } from './questions.ts';

export type Asked = { readonly person: number; readonly question: string };

export type Account = {
  /** Sends that were cut off and are reported as `unknown`. */
  readonly unknown: number;
  /** Messages whose run was interrupted too often: their senders were told. */
  readonly givenUp: number;
  /** Everything that isn't as it must be, in words; empty when all is well. */
  readonly wrong: readonly string[];
};

export type Crowded = {
  readonly telegram: TelegramServer;
  readonly model: AnthropicServer;
  readonly asked: readonly Asked[];
  readonly read: Read;
  /** The executions of tools that must not run twice, one entry each. */
  readonly effects?: readonly string[];
  /** Attempts that a run has, if processes die so often that it may use them up. */
  readonly maxAttempts?: number | undefined;
  /** In every other mode a message may be answered together with its neighbor. */
  isFollowup(person: number): boolean;
};

const pattern = /question-\d+-\d+/g;

/** The `number`th question of a person; all have one length, so that none is a prefix of another. */
export function questionBy(person: number, number: number): string {
  return `question-${person}-${String(number).padStart(3, '0')}`;
}

/** Call it at rest. */
export async function checkCrowd(crowd: Crowded): Promise<Account> {
  const unknown = await crowd.read(quoted(`select content from outbox where state = 'unknown'`));
  const unsure = unknown.map(({ content }) => textOf(content)).join('\n');
  const givenUp = crowd.maxAttempts ? await toldGivenUp(crowd) : new Set<string>();
  const wrong = [
    ...(await findBreachesIn(crowd.read, 'any')),
    ...shownTwice(crowd.model).map((question) => `shown twice to the model: ${question}`),
    ...crowd.model.requests.flatMap(({ refusal }) => refusal ?? []),
    ...repeated(crowd.effects ?? []).map((effect) => `executed twice: ${effect}`),
    ...(await misplaced(crowd)),
    ...(await misanswered(crowd, { unsure, givenUp })),
  ];
  return { unknown: unknown.length, givenUp: givenUp.size, wrong };
}

function repeated(all: readonly string[]): readonly string[] {
  return all.filter((one, index) => all.indexOf(one) !== index);
}

/** Questions that aren't in the transcript exactly once, or not in the order in which they were said. */
async function misplaced({ read, asked }: Crowded): Promise<readonly string[]> {
  const rows = await read(
    quoted(`select sessionId, parts from transcript where role = 'user' order by sessionId, position`),
  );
  const told = Map.groupBy(rows, ({ sessionId }) => String(sessionId));
  const stories = new Set([...told.values()].map((own) => questionsIn(own.map(({ parts }) => parts))));
  return [...Map.groupBy(asked, ({ person }) => person).values()].flatMap((own) => {
    const story = own.map(({ question }) => question).join(' ');
    return stories.has(story) ? [] : [`not in the transcript as it was said: ${story}`];
  });
}

function questionsIn(contents: readonly unknown[]): string {
  return contents.flatMap((content) => textOf(content).match(pattern) ?? []).join(' ');
}

/** Questions that Parley gave up after all its attempts, with a notice. */
async function toldGivenUp({ read, maxAttempts }: Crowded): Promise<ReadonlySet<string>> {
  const rows = await read(
    quoted(`select inbox.content from inbox join runs on runs.id = inbox.runId
      where inbox.outcome = 'failed' and inbox.outcomeReason = 'gave_up' and runs.attempts = ${maxAttempts}
      and exists (select 1 from outbox where outbox.runId = runs.id and purpose = 'notice'
      and outbox.state in ('sent', 'unknown'))`),
  );
  return new Set(rows.flatMap(({ content }) => textOf(content).match(pattern) ?? []));
}

type Excuses = { readonly unsure: string; readonly givenUp: ReadonlySet<string> };

/** Questions that weren't answered exactly once. */
async function misanswered({ read, telegram, asked, isFollowup }: Crowded, { unsure, givenUp }: Excuses) {
  const together = await read(
    quoted(`select inbox.content from inbox where outcome in ('answered', 'merged') and exists
      (select 1 from outbox where outbox.runId = inbox.runId and purpose = 'reply'
      and outbox.state in ('sent', 'unknown'))`),
  );
  const merged = new Set(together.flatMap(({ content }) => textOf(content).match(pattern) ?? []));
  const standing = new Map<string, number>();
  for (const person of new Set(asked.map((one) => one.person)))
    for (const { text } of telegram.botMessages(person)) standing.set(text, (standing.get(text) ?? 0) + 1);
  return asked.flatMap(({ person, question }) => {
    const answer = answerTo(question);
    const times = standing.get(answer) ?? 0;
    const isExcused =
      unsure.includes(answer) || givenUp.has(question) || (!isFollowup(person) && merged.has(question));
    return times === 1 || (times === 0 && isExcused) ? [] : [`${question}: answered ${times} times`];
  });
}

/** Returns a JSON column as text: one database returns text, another may return the parsed value. */
function textOf(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content);
}

/**
 * The conservation law, read from the database file of a gateway, running or not: every accepted
 * message has ended with one outcome, nothing is waiting to be sent, and each message is in the
 * transcript once.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { patienceMs } from '../support/patience.ts';

type Row = Readonly<Record<string, string | number | null>>;

/** Reads from the database file of a data folder, in the state in which its gateway left it. */
export function readStore(dataDir: string, sql: string, ...values: readonly unknown[]): readonly Row[] {
  using store = openReader(dataDir);
  return store.read(sql, ...values);
}

type Reader = Disposable & { read(sql: string, ...values: readonly unknown[]): readonly Row[] };

/** For several reads: the first on each connection parses the whole schema, which takes most of its time. */
function openReader(dataDir: string): Reader {
  const db = new BetterSqlite3(join(dataDir, 'parley.db'), { readonly: true });
  return {
    read: (sql, ...values) => db.prepare(sql).all(...values) as Row[],
    [Symbol.dispose]: () => db.close(),
  };
}

/** Rows that are still in progress. */
const unfinished = {
  'message without an end': `select id, state, outcome from inbox where state <> 'ended' or outcome is null`,
  // A mark promises nothing.
  'part to be sent': `select key, state, problem from outbox where state in ('pending', 'sending')
    and key not like '%:mark'`,
  'lane with a run': `select key, runId from lanes where runId is not null`,
  'ledger row that is held': `select eventKey from ledger where outcome = 'held'`,
  // The sweep takes it off, so its part may not be there yet.
  'mark of a message that has ended': `select marks.inboxId from marks join inbox on inbox.id = marks.inboxId
    where inbox.state = 'ended'`,
};

const progress = `select (select count(*) from ledger) as events,
  (select count(*) from inbox where state = 'ended') + (select count(*) from transcript)
    + (select count(*) from outbox where state not in ('pending', 'sending')) as done`;

/** What must never exist at rest. */
const unlawful = {
  'accepted event without its message': `select eventKey from ledger where outcome = 'accepted'
    and not exists (select 1 from inbox where inbox.id = ledger.inboxId)`,
  'message without its event': `select id, content from inbox where messageId is not null
    and not exists (select 1 from ledger where ledger.inboxId = inbox.id)`,
  'message taken twice': `select transcriptId, count(*) as times from inbox
    where transcriptId is not null group by transcriptId having count(*) > 1`,
  'message answered without standing in the transcript': `select id, outcome from inbox
    where kind = 'message' and outcome in ('answered', 'silent') and not exists
    (select 1 from transcript where transcript.id = inbox.transcriptId and transcript.role = 'user')`,
  'user text that came from no message': `select id from transcript where role = 'user' and isSummary = 0
    and not exists (select 1 from inbox where inbox.transcriptId = transcript.id)`,
  'message answered, its reply failed': `select inbox.id from inbox join outbox on outbox.runId = inbox.runId
    where inbox.outcome = 'answered' and outbox.purpose = 'reply' and outbox.state = 'failed'
    and not exists (select 1 from outbox as other where other.runId = inbox.runId
      and other.purpose = 'reply' and other.state = 'sent')`,
  'unfinished image': `select id, role from transcript where isFinished = 0`,
  'call without a result': `select callId, state from toolCalls where state <> 'done'`,
  'run that never ended': `select id from runs where state <> 'finished'`,
};

function findIn({ read }: Reader, checks: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(checks).flatMap(([name, sql]) =>
    read(sql).map((row) => `${name}: ${JSON.stringify(row)}`),
  );
}

/** Reads from a store that others may be writing to. */
export type Read = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Runs the same checks on any database, including those that require quoted column names. */
export async function findBreachesIn(read: Read, which: 'unfinished' | 'any'): Promise<readonly string[]> {
  const checks = which === 'any' ? { ...unfinished, ...unlawful } : unfinished;
  const found: string[] = [];
  for (const [name, sql] of Object.entries(checks))
    for (const row of await read(quoted(sql))) found.push(`${name}: ${JSON.stringify(row)}`);
  return found;
}

/** PostgreSQL folds the case of every unquoted name. */
export function quoted(sql: string): string {
  return sql.replace(/\b[a-z]+[A-Z]\w*\b/g, '"$&"');
}

/**
 * Waits until everything accepted has ended and at least `events` platform events have been recorded. Rejects with
 * what is still open if nothing has moved for `deadlineMs`: the limit is on standing still, not on the amount of work.
 */
export async function untilAtRest(dataDir: string, events: number, deadlineMs = patienceMs): Promise<void> {
  using store = openReader(dataDir);
  let deadline = Date.now() + deadlineMs;
  let before = 0;
  for (;;) {
    // Counted first, so that the second read sees whatever arrives in between.
    const [counts] = store.read(progress);
    const [known, done] = [Number(counts?.events), Number(counts?.done)];
    if (known + done > before) deadline = Date.now() + deadlineMs;
    before = known + done;
    const isLate = Date.now() > deadline;
    const open = known >= events || isLate ? findIn(store, unfinished) : undefined;
    if (open?.length === 0 && known >= events) return;
    if (isLate) {
      const late = open?.length ? open : [`${known} of ${events} events are written down`];
      throw new Error(`not at rest, and nothing moved for ${deadlineMs} ms:\n${late.join('\n')}`);
    }
    await look();
  }
}

async function untilStored(dataDir: string, sql: string, rows: number, deadlineMs: number): Promise<void> {
  using store = openReader(dataDir);
  const deadline = Date.now() + deadlineMs;
  while (store.read(sql).length < rows) {
    if (Date.now() > deadline) throw new Error(`fewer than ${rows} rows after ${deadlineMs} ms: ${sql}`);
    await look();
  }
}

/** The file reports no changes, so it is polled; every caller has a deadline. */
function look(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 40));
}

/** Waits until `events` platform events have been recorded, whatever became of them. */
export async function untilLedger(dataDir: string, events: number, deadlineMs = patienceMs): Promise<void> {
  await untilStored(dataDir, 'select 1 from ledger', events, deadlineMs);
}

/** Returns how many platform events have been recorded. */
export function countEvents(dataDir: string): number {
  return readStore(dataDir, 'select 1 from ledger').length;
}

/** Returns every breach of the law, in words; empty when it holds. Call it at rest. */
export function findBreaches(dataDir: string): readonly string[] {
  using store = openReader(dataDir);
  return [...findIn(store, { ...unfinished, ...unlawful }), ...readWarnings(dataDir)];
}

/** Returns the warnings that Node.js itself issued in any of the gateway's lives, such as leaking listeners. */
function readWarnings(dataDir: string): readonly string[] {
  const log = join(dataDir, 'test.log');
  if (!existsSync(log)) return [];
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => /^\(node:\d+\) /.test(line));
}

/** Returns how often each text is in the transcripts as something a person said. */
export function countTold(dataDir: string, texts: readonly string[]): readonly number[] {
  const rows = readStore(dataDir, `select parts from transcript where role = 'user' and isSummary = 0`);
  const told = rows.map((row) => String(row.parts));
  return texts.map(
    (text) => told.filter((parts) => parts.includes(JSON.stringify(text).slice(1, -1))).length,
  );
}

/**
 * The only writer of a SQLite database. Requests that arrive while a commit is being flushed form the next group: one
 * transaction and one fsync, with each request in a savepoint, so that a failed request rolls back only itself. Answers
 * are sent after COMMIT. Checkpoints happen here too, never on the event loop.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { ParleyError } from '#contracts/errors.ts';
import { keepCompiledCode } from '../../processes/compiled-code.ts';
import type { StepTx, StoreProgram, WriterTask } from '../base/command.ts';
import type { Tables } from '../base/tables.ts';
import { migrate } from '../migrate.ts';
import { cacheStatements, directDatabase } from './direct-database.ts';
import {
  faultOf,
  type JudgedResult,
  type WriterAnswer,
  type WriterReport,
  type WriterRequest,
} from './writer-messages.ts';

/** Opens the database and runs the main thread's requests until it sends `close`. */
export function serveWriter(
  program: StoreProgram,
  port = requirePort(),
  task: WriterTask = workerData,
): void {
  // The port's listener is attached only once the database is ready, so early requests wait in the port.
  open(program, task)
    .then((database) => {
      port.postMessage({ kind: 'ready' } satisfies WriterReport);
      serve(port, database);
      // It would otherwise be kept only when the thread ends in an orderly way. By then the first steps have run.
      setTimeout(keepCompiledCode, 2000).unref();
    })
    .catch((error: unknown) => {
      port.postMessage({ kind: 'unusable', fault: faultOf(error, task.file) } satisfies WriterReport);
      port.close();
    });
}

async function open({ steps, chatCommands, migrations }: StoreProgram, task: WriterTask) {
  const connection = new BetterSqlite3(task.file);
  connection.pragma('journal_mode = WAL');
  // FULL, because with NORMAL a power cut lost committed rows (measured), and with FULL none.
  connection.pragma('synchronous = FULL');
  connection.pragma('busy_timeout = 5000');
  connection.pragma('cache_size = -4000');
  // Otherwise a step's undo data is written to a file once the step has touched 64 kB: 0.2 ms per answer.
  connection.pragma('temp_store = MEMORY');
  await migrateWhole(connection, migrations);
  const commands = new Map(steps.map((step) => [step.name, step]));
  const control = prepareControl(connection);
  return { ...task, connection, control, tables: directDatabase(connection), commands, chatCommands };
}

/** Prepares the statements that begin and end transactions and steps, which run several times per message. */
function prepareControl(connection: BetterSqlite3.Database) {
  const prepare = (sql: string) => {
    const statement = connection.prepare(sql);
    return () => void statement.run();
  };
  return {
    begin: prepare('BEGIN IMMEDIATE'),
    commit: prepare('COMMIT'),
    rollback: prepare('ROLLBACK'),
    beginStep: prepare('SAVEPOINT step'),
    keepStep: prepare('RELEASE step'),
    undoStep: prepare('ROLLBACK TO step'),
  };
}

/**
 * Migrates in one transaction. Kysely assumes that SQLite's schema changes aren't transactional, but they are, and a
 * crash must not leave half a migration.
 */
async function migrateWhole(
  connection: BetterSqlite3.Database,
  migrations: StoreProgram['migrations'],
): Promise<void> {
  const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: cacheStatements(connection) }) });
  connection.exec('BEGIN IMMEDIATE');
  try {
    await migrate(db, migrations);
    connection.exec('COMMIT');
  } catch (error) {
    if (connection.inTransaction) connection.exec('ROLLBACK');
    throw error;
  }
}

type Database = Awaited<ReturnType<typeof open>>;

function serve(port: MessagePort, database: Database): void {
  const waiting: WriterRequest[] = [];
  let isBusy = false;
  let isClosing = false;

  const work = async () => {
    if (isBusy) return;
    isBusy = true;
    while (true) {
      drainPort();
      if (!waiting.some((request) => request.id !== undefined) && !(isClosing && waiting.length > 0)) break;
      const answers = await commitGroup(database, waiting.splice(0));
      port.postMessage({ kind: 'answers', answers } satisfies WriterReport);
    }
    isBusy = false;
    if (isClosing) {
      database.connection.close();
      port.postMessage({ kind: 'closed' } satisfies WriterReport);
      port.close();
    }
  };

  const take = (message: WriterRequest[] | 'close') => {
    if (message === 'close') isClosing = true;
    else waiting.push(...message);
  };

  const drainPort = () => {
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
      take(next.message as WriterRequest[] | 'close');
    }
  };

  port.on('message', (message: WriterRequest[] | 'close') => {
    take(message);
    void work();
  });
}

async function commitGroup(database: Database, group: readonly WriterRequest[]): Promise<WriterAnswer[]> {
  const { connection, control, chatCommands, file, tables, texts } = database;
  try {
    control.begin();
    const time = { now: Date.now(), advanceNow: undefined };
    const tx: StepTx = { ...tables, ...time, dialect: 'sqlite', texts, chatCommands };
    const answers: WriterAnswer[] = [];
    for (const request of group) answers.push(...(await runInSavepoint(database, tx, request)));
    control.commit();
    return answers;
  } catch (error) {
    // The complete group is undone: the disk is full, or the file was lost.
    if (connection.inTransaction) control.rollback();
    const fault = faultOf(error, file);
    return group.flatMap(({ id }) => (id === undefined ? [] : [{ id, kind: 'failed', fault } as const]));
  }
}

async function runInSavepoint(
  { connection, control, commands, file }: Database,
  tx: StepTx,
  request: WriterRequest,
): Promise<WriterAnswer[]> {
  const { id } = request;
  control.beginStep();
  try {
    const command = commands.get(request.command);
    if (!command) throw new ParleyError('internal', `There is no store command named ${request.command}.`);
    // The typed entry point is Store.write, where the type of a command's input was checked.
    const output = await command.run(judgedTx(tx, request), request.input as never);
    control.keepStep();
    return id === undefined ? [] : [{ id, kind: 'done', output }];
  } catch (error) {
    // After faults such as SQLITE_FULL, SQLite has already undone the complete transaction.
    if (!connection.inTransaction) throw error;
    control.undoStep();
    control.keepStep();
    if (id === undefined) return [];
    if (error instanceof Unjudged) return [{ id, kind: 'unjudged', ...error.result }];
    return [{ id, kind: 'failed', fault: faultOf(error, file) }];
  }
}

/** Ends a step whose result the event loop's hooks haven't seen yet. */
class Unjudged extends Error {
  readonly result: JudgedResult;

  constructor(result: JudgedResult) {
    super('a result that no hook has seen');
    this.result = result;
  }
}

/** Has the step write results as the event loop's hooks have left them. */
function judgedTx(tx: StepTx, { judged }: WriterRequest): StepTx {
  if (judged === undefined) return tx;
  return {
    ...tx,
    persist: (of, parts) => {
      const known = judged.find((each) => each.of.runId === of.runId && each.of.call.id === of.call.id);
      if (known === undefined) throw new Unjudged({ of, parts });
      return known.parts;
    },
  };
}

function requirePort() {
  if (!parentPort) throw new ParleyError('internal', 'writer-thread.ts runs only as a worker thread.');
  return parentPort;
}

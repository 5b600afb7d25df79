import type { Worker } from 'node:worker_threads';
import type { Kysely, Selectable } from 'kysely';
import type { PersistResult } from '#contracts/hook.ts';
import type { RunKind } from '#contracts/inbox-item.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { ChatTexts } from '../../texts/chat-texts.ts';
import type { Effects } from './effects.ts';
import type { LaneSpec } from './keys.ts';
import type { SchemaSteps } from './schema-step.ts';
import type { LanesTable, Tables } from './tables.ts';

/** One open transaction, or one read of the last commit. */
export type Tx = {
  readonly db: Kysely<Tables>;
  /**
   * The database's clock when the transaction began or last locked a row, ms since the epoch. Every decision about time
   * uses it.
   */
  readonly now: number;
  readonly dialect: 'sqlite' | 'postgres';
  /** Advances `now` after a wait for a row; undefined where nothing waits for rows. */
  readonly advanceNow: ((now: number) => void) | undefined;
  /** Absent where statements run in this thread as they are issued. */
  readonly remote?: RemoteStatements;
  /** Absent where statements are sent to a server. */
  readonly inPlace?: InPlaceStatements;
};

/** A statement's text, and the name under which a server keeps it prepared; without a name it is parsed every time. */
export type NamedStatement = { readonly sql: string; readonly statement?: string | undefined };

/** Sends statements to a server in the order of the calls. A promise rejects with the server's error. */
export type RemoteStatements = {
  ask(statement: NamedStatement, parameters: readonly unknown[]): Promise<RemoteAnswer>;
  /** Sends a write without waiting for its answer. */
  post(statement: NamedStatement, parameters: readonly unknown[]): void;
};

/** A server's answer: rows, and how many rows a write has changed. */
export type RemoteAnswer = { readonly rows: readonly unknown[]; readonly changed: number };

/** Runs statements in this thread, without a promise for each. The methods throw the database's errors. */
export type InPlaceStatements = {
  all(sql: string, parameters: readonly unknown[]): readonly unknown[];
  first(sql: string, parameters: readonly unknown[]): unknown;
  /** Returns how many rows it has changed. */
  run(sql: string, parameters: readonly unknown[]): number;
};

/** One open transaction of a step. */
export type StepTx = Tx & {
  /** Parley's own texts, in the operator's language. */
  readonly texts: ChatTexts;
  readonly chatCommands: ReadonlyMap<string, CommandStep>;
  /**
   * Returns what hooks make of a result that the step itself words; absent without such a hook. On SQLite, whose writer
   * thread calls no hooks, it ends the step, which is repeated with the answer.
   */
  readonly persist?: PersistResult | undefined;
};

/** Who sent a chat command, where, and the lane it concerns. */
export type CommandScene = {
  /** Key of the bot account that received it. */
  readonly account: string;
  readonly senderId: string;
  readonly conversationKey: string;
  readonly route: ReplyRoute;
  readonly laneKey: string;
  /** The lane's row, locked. */
  lane(): Promise<Selectable<LanesTable>>;
  /** Returns the key of a part that the command sends: the same one when the step is repeated. */
  partKey(name: string): string;
  readonly effects: Effects;
  /** Number of the command's own row, when it runs in its lane's order. */
  readonly number?: number;
};

/** Where a command was received, for its locks. */
export type CommandPlace = Pick<CommandScene, 'account' | 'conversationKey'> & { readonly lane: LaneSpec };

export type CommandAnswer = {
  /** Absent: there is no reply. */
  readonly text?: string | undefined;
  /** The sender may not do this, so the ledger records a refusal. */
  readonly isRefused?: boolean;
};

/** A chat command inside a transaction, where its effect, its answer and its ledger row are stored together. */
export type CommandStep = {
  readonly name: string;
  /**
   * Locks all rows that it needs except conversations, including its account and lane, in the order common to all
   * steps: approvals or links, accounts, lanes, the lanes below them, a question. Called before its batch has locked
   * anything; a command without this method finds its account and lane locked. Returns its input, completed with what
   * it has found.
   */
  lock?(tx: StepTx, place: CommandPlace, input: unknown): Promise<unknown>;
  /** The kind of run that it begins in its lane's order, instead of calling `run`. */
  readonly begins?: Exclude<RunKind, 'turn'>;
  /** `input` is plain data, made by the same command's `load`. */
  run(tx: StepTx, scene: CommandScene, input: unknown): Promise<CommandAnswer>;
};

/** Code that runs inside transactions, also on SQLite's writer thread. */
export type StoreProgram = {
  readonly steps: readonly StoreCommand<never, unknown>[];
  readonly chatCommands: ReadonlyMap<string, CommandStep>;
  /** Schema migrations by name, in order. Default: this version's. */
  readonly migrations?: SchemaSteps;
};

/** Passed to the store by the layers above when it opens. */
export type StoreSetup = StoreProgram & {
  readonly texts: ChatTexts;
  /** Module that SQLite's writer thread starts with; it runs the same program. */
  readonly writer: URL;
  /** Returns the current `StepTx.persist`; asked for at each step. */
  persistHook?(): PersistResult | undefined;
  /** Starts the writer with its task. Default: in a thread of its own. */
  readonly startWriter?: (writer: URL, task: WriterTask) => Worker;
};

/** The file that a writer opens, and the texts that its steps fill in. */
export type WriterTask = { readonly file: string; readonly texts: ChatTexts };

/**
 * A named step. Input and output are plain data, because on SQLite they cross to the writer thread. A step runs
 * completely or not at all, never spans a model, tool or network call, and may be repeated after a fault, so its
 * comment names its idempotency key. It may issue several statements at once (`Promise.all`) if each call is a single
 * statement: they run in that order, and none continues after another has failed.
 */
export type StoreCommand<Input, Output> = {
  readonly name: string;
  readonly run: (tx: StepTx, input: Input) => Promise<Output>;
};

/** A read-only query, answered from the last commit. */
export type StoreQuery<Input, Output> = {
  readonly query: string;
  /**
   * True when the answer depends on `tx.now`, which then is the database's clock; on PostgreSQL it costs a round trip.
   */
  readonly usesClock?: true;
  /**
   * True for reads of a few rows by key that every message needs: on PostgreSQL they share a connection and its round
   * trips with others in progress.
   */
  readonly isShared?: true;
  readonly run: (tx: Tx, input: Input) => Promise<Output>;
};

/**
 * The database: writes are steps in one transaction each, reads are queries. Both reject with
 * `store_unavailable` or `store_full`.
 */
export interface Store {
  /** Runs the step in a transaction; resolves after its commit. */
  write<Input, Output>(command: StoreCommand<Input, Output>, input: Input): Promise<Output>;
  /**
   * Runs the step as part of the next commit that another write forces. Only for freshness: the write may be lost in a
   * crash.
   */
  writeAlong<Input, Output>(command: StoreCommand<Input, Output>, input: Input): void;
  read<Input, Output>(query: StoreQuery<Input, Output>, input: Input): Promise<Output>;
  /**
   * Returns a number that differs after every commit of any process. Costs a few microseconds; absent where it would
   * cost a round trip. Throws like `read`.
   */
  version?(): number;
  /** Resolves when the store can never be used again in this process; an unreachable database doesn't count. */
  readonly broken: Promise<void>;
  /** Resolves when everything requested before has been committed. */
  close(): Promise<void>;
}

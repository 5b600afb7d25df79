/**
 * Threat 2: nobody finds a pairing code by guessing, uses one twice, or pushes out another's request. Runs the
 * store's own steps on a database file, with a clock that the test controls: hours of guessing take seconds.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newOneTimeCode } from '../../src/commands/one-time-code.ts';
import { attemptsPerMinute } from '../../src/store/access/decide-approval.ts';
import type { ApprovalResult } from '../../src/store/access/pairing.ts';
import { revokeAccess } from '../../src/store/access/revoke-access.ts';
import type { StepTx } from '../../src/store/base/command.ts';
import type { Tables } from '../../src/store/base/tables.ts';
import { migrate } from '../../src/store/migrate.ts';
import { directDatabase } from '../../src/store/sqlite/direct-database.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { approveIn, askIn, atConsole } from '../store/access-builders.ts';
import { isLong } from '../support/long-run.ts';

const guesses = isLong ? 1_000_000 : 20_000;
const replays = isLong ? 10_000 : 300;
const minute = 60_000;
const account = 'test/bot';

describe('pairing codes', () => {
  let folder = '';
  let clock: TurnedStore;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'parley-pairing-'));
    clock = await openTurned(folder);
  });
  afterEach(async () => {
    clock.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  it(`reveals no pairing code to ${guesses.toLocaleString('en')} guesses, of which it checks ten a minute`, {
    timeout: 900_000,
  }, async () => {
    const evaluated: number[] = [];
    let code = '';
    for (let n = 0; n < guesses; n++) {
      clock.turn(20);
      if (n === guesses / 2) clock = await clock.restart();
      // The waiting person writes again, so that there is a code to find at every moment.
      if (n % 100 === 0) code = (await askFor(clock, 'ann')) ?? code;
      // Others fill the places next to hers, and try to take hers.
      if (n % 100 === 0) await askFor(clock, `flood-${n}`);
      const { kind } = await approveIn(clock.tx(), newOneTimeCode());
      expect(kind).not.toBe('approved');
      if (kind === 'unknown') evaluated.push(clock.now());
      // Now even the right code isn't checked.
      else if (n % 50 === 0) expect(await approveIn(clock.tx(), code)).toEqual({ kind: 'limited' });
    }
    expect(evaluated.length).toBeGreaterThan(guesses / 500);
    for (const [n, at] of evaluated.entries()) {
      const tenth = evaluated[n - attemptsPerMinute];
      if (tenth !== undefined) expect(at - tenth).toBeGreaterThanOrEqual(minute);
    }
    // There was a code to find all along: its owner can still use it.
    clock.turn(minute);
    const last = (await askFor(clock, 'ann')) ?? code;
    expect(await approveIn(clock.tx(), last)).toMatchObject({ kind: 'approved', ref: 'test:ann' });
  });

  it(`admits nobody by ${replays.toLocaleString('en')} replays of used, expired and withdrawn codes`, {
    timeout: 300_000,
  }, async () => {
    const used = await asked(clock, 'used');
    const expired = await asked(clock, 'expired');
    const withdrawn = await asked(clock, 'withdrawn');
    expect(await approveIn(clock.tx(), used)).toMatchObject({ kind: 'approved' });
    await revokeAccess(clock.tx(), { ref: 'test:withdrawn', by: atConsole });
    clock.turn(60 * minute);
    const kinds = new Set<ApprovalResult['kind']>();
    for (let n = 0; n < replays; n++) {
      if (n === replays / 2) clock = await clock.restart();
      // Slow enough that each of them is checked.
      clock.turn(minute / attemptsPerMinute + 1);
      kinds.add((await approveIn(clock.tx(), [used, expired, withdrawn][n % 3] ?? '')).kind);
    }
    expect([...kinds]).toEqual(['unknown']);
    expect(clock.people()).toEqual(['used']);
  });

  it('gives a flood of a thousand senders no code once three wait, whose codes stay valid', async () => {
    const codes = [await asked(clock, 'ann'), await asked(clock, 'bob'), await asked(clock, 'cid')];
    for (let n = 0; n < 1_000; n++) {
      clock.turn(1_000);
      expect(await askFor(clock, `flood-${n}`)).toBeUndefined();
    }
    for (const code of codes) expect((await approveIn(clock.tx(), code)).kind).toBe('approved');
    expect(clock.people()).toEqual(['ann', 'bob', 'cid']);
  });
});

async function asked(clock: TurnedStore, peer: string): Promise<string> {
  const code = await askFor(clock, peer);
  if (code === undefined) throw new Error(`${peer} was shown no code`);
  return code;
}

/** Returns the code that the peer is shown for a message now; undefined if none is to be had. */
async function askFor(clock: TurnedStore, peer: string): Promise<string | undefined> {
  const code = newOneTimeCode();
  const requested = await askIn(clock.tx(), { account, peer, code });
  return requested === 'new' ? code : undefined;
}

type TurnedStore = {
  now(): number;
  turn(ms: number): void;
  tx(): StepTx;
  /** Closes the file and opens it again; its clock keeps its time. */
  restart(): Promise<TurnedStore>;
  people(): readonly string[];
  close(): void;
};

async function openTurned(folder: string, at = Date.UTC(2026, 10, 20)): Promise<TurnedStore> {
  const connection = new BetterSqlite3(join(folder, 'parley.db'));
  // Power cuts don't matter here.
  connection.pragma('synchronous = OFF');
  connection.pragma('journal_mode = WAL');
  await migrate(new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }) }));
  const database = directDatabase(connection);
  const setup = { texts: textsFor('en'), chatCommands: new Map() };
  let now = at;
  return {
    now: () => now,
    turn: (ms) => {
      now += ms;
    },
    tx: () => ({ ...database, now, dialect: 'sqlite', advanceNow: undefined, ...setup }),
    restart: async () => {
      connection.close();
      return openTurned(folder, now);
    },
    people: () =>
      connection
        .prepare('select "peerId" from "people" order by "peerId"')
        .all()
        .map((row) => (row as { peerId: string }).peerId),
    close: () => connection.close(),
  };
}

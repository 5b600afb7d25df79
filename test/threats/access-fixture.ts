import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { noProbe } from '#contracts/probe.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { createInboundPolicy } from '../../src/inbound/inbound-policy.ts';
import { createIntake } from '../../src/inbound/intake.ts';
import type { Store } from '../../src/store/base/command.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { commandDeps } from '../inbound/support/command-deps.ts';
import { unique } from '../store/builders.ts';
import { silentLog } from '../support/silent-log.ts';
import { type Policies, senders, settingsOf } from './access-cells.ts';

/** The intake of one bot account, with two people approved, and access to everything it may have stored. */
export type Door = {
  readonly bot: string;
  accept(events: readonly InboundEnvelope[]): Promise<readonly Acceptance[]>;
  /** Ids of the messages whose files would be downloaded. */
  readonly fetches: readonly string[];
  /** Returns the intake of the same account on another store. */
  reopened(store: Store): Pick<Door, 'accept'>;
  change(sql: string): void;
  rows(sql: string): readonly Readonly<Record<string, string | number | null>>[];
};

export type DoorSettings = {
  readonly dataDir: string;
  readonly network: string;
  readonly policies: Policies;
  /** Merged over the configuration of these tests. */
  readonly config?: object;
};

export async function anAccessFixture(
  store: Store,
  { dataDir, network, policies, config = {} }: DoorSettings,
): Promise<Door> {
  const bot = unique('bot');
  const account = `${network}/${bot}`;
  const holder = unique('boot');
  const configPath = join(dataDir, `${bot}.json`);
  await writeFile(configPath, JSON.stringify({ ...settingsOf(policies, network), ...config }));
  const values = { PARLEY_DATA_DIR: dataDir, PARLEY_CONFIG: configPath };
  const policy = createInboundPolicy(loadConfig({ values, unknown: [] }, dataDir), textsFor('en'));
  const lease = await store.write(claimAccount, { account, holder, leaseMs: 600_000 });
  if (lease.kind !== 'held') throw new Error('the account is busy');
  const file = join(dataDir, 'parley.db');
  approvePeople(file, { account, network });
  const fetches: string[] = [];
  const intakeOver = (over: Store) =>
    createIntake(
      {
        store: over,
        policy,
        commands: commandDeps,
        clock: systemClock,
        log: silentLog,
        probe: noProbe,
        start: (effects) => void fetches.push(...effects.fetches),
        reserve: () => undefined,
        hasSpace: () => true,
      },
      { account, epoch: lease.epoch, holder, botName: () => 'parley' },
    );
  const acceptOver = (over: Store): Door['accept'] => {
    const intake = intakeOver(over);
    return (events) => intake.accept({ events });
  };
  return {
    bot,
    fetches,
    accept: acceptOver(store),
    reopened: (over) => ({ accept: acceptOver(over) }),
    change: (sql) => {
      const db = new BetterSqlite3(file);
      db.exec(sql);
      db.close();
    },
    rows: (sql) => {
      const db = new BetterSqlite3(file, { readonly: true });
      try {
        return db.prepare(sql).all({ account }) as ReturnType<Door['rows']>;
      } finally {
        db.close();
      }
    },
  };
}

function approvePeople(file: string, { account, network }: { account: string; network: string }): void {
  const db = new BetterSqlite3(file);
  const insert = db.prepare(
    `insert into "people" ("account", "peerId", "ref", "name", "role", "approvedAt", "approvedBy")
     values (?, ?, ?, 'Someone', ?, 1, 'console')`,
  );
  for (const [role, peer] of [
    ['user', senders.approved],
    ['owner', senders['approved as owner']],
  ] as const)
    insert.run(account, peer, `${network}:${peer}`, role);
  db.close();
}

/** Returns all stored text of the account's events, wherever it is; not the texts sent to people. */
export function contentsOf(door: Door): string {
  const tables = {
    inbox: `select "content" from "inbox" where "account" = @account`,
    groupContext: `select "content" from "groupContext" where "conversationKey" like @account || '/%'`,
    transcript: `select "parts" as "content" from "transcript" where @account <> ''`,
    ledger: `select "raw" as "content" from "ledger" where "account" = @account and "raw" is not null
      and not ${isNamed}`,
    conversations: `select "movedTo" as "content" from "conversations"
      where "key" like @account || '/%' and "movedTo" is not null`,
  };
  return Object.values(tables)
    .flatMap((sql) => door.rows(sql).map(({ content }) => String(content)))
    .join('\n');
}

/** Matches refusals of an event that Parley doesn't read, which say in the platform's own words what kind it was. */
const isNamed = `("reason" = 'unsupported-event' and length("raw") < 64 and "raw" not glob '*[^a-z_]*')`;

/** Returns ledger rows without a reason, or with more in them than a refused event may leave. */
export function findUnexplained(door: Door): readonly unknown[] {
  return door.rows(
    `select "eventKey", "outcome", "reason" from "ledger" where "account" = @account
     and "outcome" in ('refused', 'ignored')
     and ("reason" is null or "inboxId" is not null or "laneKey" is not null
      or ("raw" is not null and not ${isNamed}))`,
  );
}

/**
 * Kills of backup and restore on PostgreSQL. The backups are made while a gateway is working, and one is restored.
 * `PARLEY_LONG=1` kills at every step, and at random moments.
 */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeBackup } from '../../src/backup/make-backup.ts';
import { backupsIn, type FoundBackup, listBackups } from '../../src/backup/manifest.ts';
import { finishRestore, restoreBackup, verifyBackup } from '../../src/backup/restore.ts';
import { isRestoreUnfinished } from '../../src/backup/restore-plan.ts';
import { lockDataFolder } from '../../src/processes/folder-lock.ts';
import { findBreachesIn } from '../e2e/conservation.ts';
import { checkCrowd, questionBy } from '../e2e/crowd-report.ts';
import { databaseServer, makeDatabase } from '../e2e/own-database.ts';
import { type Person, telegramPerson } from '../e2e/person.ts';
import { answerQuestion, answerTo } from '../e2e/questions.ts';
import { createRandom } from '../e2e/random.ts';
import { startStage } from '../e2e/stage.ts';
import { until } from '../e2e/until.ts';
import { isLong } from '../support/long-run.ts';
import { actAndDie } from './backup-folder.ts';

const random = createRandom(Number(process.env.SOAK_SEED ?? 20_261_123));
const people = [601, 602, 603];
const config = {
  access: { dmPolicy: 'open' },
  queue: { dm: { mode: 'followup', cap: 200 } },
  rateLimit: { perSenderPerMinute: 100_000 },
};
/** Time between an answer and the next question, ms: many kills take long. */
const restMs = isLong ? 500 : 50;

type Moment = string | { readonly afterMs: number };

describe.skipIf(databaseServer === undefined)('a gateway at work on PostgreSQL', () => {
  it('survives killed backups, and a killed restore leaves one state, which a start continues', {
    timeout: isLong ? 3_600_000 : 300_000,
  }, async () => {
    const installation = await anInstallation();
    const { read, dataDir, gateway, mark, marks, atRest } = installation;
    await mark('other');
    const other = await installation.backUp();
    const load = installation.beginLoad();
    const kept = await killBackups(installation);
    await mark('first');
    const backup = await installation.backUp();
    expect(readdirSync(backupsIn(dataDir)).filter((name) => name.includes('unfinished'))).toEqual([]);
    expect(await listBackups(backupsIn(dataDir))).toHaveLength(kept + 1);
    await load.end();
    await atRest();
    const account = await checkCrowd({
      ...gateway,
      effects: [],
      read,
      asked: load.asked,
      isFollowup: () => true,
    });
    expect(account).toEqual({ unknown: 0, givenUp: 0, wrong: [] });
    await gateway.parley().kill();

    await killRestores(installation, { backup, other });

    // The last restore is continued by the start itself.
    await mark('second');
    await installation.die('restore', 'moved', backup.path);
    expect(isRestoreUnfinished(dataDir)).toBe(true);
    const open = await questionsIn(read, `select content from inbox where state <> 'ended'`);
    const before = new Map(load.talkers.map((person) => [person, person.standing().length]));
    await gateway.start();
    expect(await marks()).toEqual(['first', 'first']);
    await atRest();
    expect(await findBreachesIn(read, 'any')).toEqual([]);
    const unknown = await questionsIn(read, `select content from outbox where state = 'unknown'`);
    const said = load.talkers.flatMap((person) => person.standing().slice(before.get(person)));
    const missing = open.filter((question) => !said.includes(answerTo(question)));
    expect(missing.filter((question) => !unknown.includes(question))).toEqual([]);
    // Nothing that had already been answered is answered again.
    expect(said.toSorted()).toEqual(
      [...new Set(open)]
        .filter((question) => !missing.includes(question))
        .map(answerTo)
        .sort(),
    );
  });
});

type Backups = { readonly backup: FoundBackup; readonly other: FoundBackup };

/** After each kill database and files have the same state, whatever is called next. */
async function killRestores(installation: Installation, { backup, other }: Backups): Promise<void> {
  const { dataDir, url, act, mark, marks, die } = installation;
  const restoring = (from: FoundBackup) => () =>
    act(() => restoreBackup({ dataDir, databaseUrl: url, backup: from }));
  const nexts = [
    { next: () => act(async () => undefined), leads: undefined },
    { next: restoring(backup), leads: 'first' },
    { next: restoring(other), leads: 'other' },
  ] as const;
  const seen = new Set<unknown>();
  for (const [index, moment] of (await restoreMoments(installation, backup)).entries()) {
    await mark('second');
    await die('restore', moment, backup.path);
    for (const databaseUrl of isRestoreUnfinished(dataDir) ? [undefined, `${url}-other`] : [])
      await expect(finishRestore({ dataDir, databaseUrl })).rejects.toThrow(`doesn't name that database`);
    const { next, leads } = nexts[Math.max(0, index - 1) % nexts.length] ?? nexts[0];
    await next();
    const [inDatabase, inFolder] = await marks();
    expect(inFolder, JSON.stringify(moment)).toBe(inDatabase);
    if (leads !== undefined) expect(inDatabase).toBe(leads);
    seen.add(inDatabase);
  }
  expect([...seen]).toEqual(expect.arrayContaining(['first', 'second']));
}

type Installation = Awaited<ReturnType<typeof anInstallation>>;

/** A gateway on its own database, both in one state, which `mark` sets by name. */
async function anInstallation() {
  const { url, read } = await makeDatabase(onTestFinished);
  const gateway = await startStage({ config, env: { DATABASE_URL: url } }, onTestFinished);
  gateway.model.script((body) => ({ ...answerQuestion(body), delayMs: 30 }));
  const { dataDir } = gateway;
  mkdirSync(join(dataDir, 'media'), { recursive: true });
  return {
    ...{ url, read, dataDir, gateway },
    mark: async (name: string) => {
      await read(`delete from lockouts`);
      await read(`insert into lockouts (source, until) values ('${name}', 1)`);
      for (const file of ['media/mark', 'token']) writeFileSync(join(dataDir, file), name, { mode: 0o600 });
    },
    marks: async () => {
      const [row] = await read('select source from lockouts');
      const [mark, token] = ['media/mark', 'token'].map((file) => readFileSync(join(dataDir, file), 'utf8'));
      return [row?.source, mark === token ? mark : `${mark} and ${token}`];
    },
    backUp: () => makeBackup({ dataDir, databaseUrl: url, settings: [] }),
    /** Acts as the command does: an interrupted restore is finished first. */
    act: async (deed: () => Promise<unknown>) => {
      const end = async () => void (await finishRestore({ dataDir, databaseUrl: url }));
      const lock = await lockDataFolder(dataDir, 'exclusive', end);
      await deed().finally(() => lock.release());
    },
    die: (act: string, moment: Moment, backup = '') =>
      typeof moment === 'string'
        ? actAndDie([act, dataDir, moment, backup, url])
        : actAndDie([act, dataDir, '0', backup, url], () => pause(moment.afterMs)),
    beginLoad: () => beginLoad(people.map((id) => telegramPerson(gateway.telegram, id))),
    atRest: () =>
      until(
        async () =>
          gateway.telegram.updates.pending.length === 0 &&
          (await findBreachesIn(read, 'unfinished')).length === 0,
        { what: 'rest' },
      ),
  };
}

/** Everybody asks the next question once the previous one has been answered. */
function beginLoad(talkers: readonly Person[]) {
  const asked: { readonly person: number; readonly question: string }[] = [];
  const ending = new AbortController();
  const talk = async (talker: Person, person: number) => {
    for (let number = 1; !ending.signal.aborted; number++) {
      const question = questionBy(person, number);
      asked.push({ person, question });
      talker.says(question);
      await until(() => talker.standing().includes(answerTo(question)), {
        what: `the answer to ${question}`,
      });
      await pause(restMs);
    }
  };
  const talks = talkers.map((talker, index) => talk(talker, people[index] ?? 0));
  // A failure surfaces at the end of the load.
  for (const one of talks) one.catch(() => undefined);
  return {
    ...{ asked, talkers },
    end: async () => {
      ending.abort();
      await Promise.all(talks);
    },
  };
}

/** Returns how many complete backups exist; each of them matches its manifest. */
async function killBackups({ die, dataDir }: Installation): Promise<number> {
  const steps = isLong ? stepsOf((await die('backup', '0')) ?? 0) : [];
  for (const moment of [...steps, 'described', ...randomMoments()]) {
    const before = (await listBackups(backupsIn(dataDir))).length;
    const operations = await die('backup', moment);
    const backups = await listBackups(backupsIn(dataDir));
    if (moment === 'described') expect(operations).toBeUndefined();
    if (operations !== undefined) expect(backups).toHaveLength(before + 1);
    for (const backup of isLong ? backups.slice(-1) : backups) await verifyBackup(backup);
  }
  return (await listBackups(backupsIn(dataDir))).length;
}

async function restoreMoments({ die, mark }: Installation, backup: FoundBackup): Promise<readonly Moment[]> {
  const named = ['planned', 'committing'];
  if (!isLong) return named;
  await mark('second');
  return [...named, ...stepsOf((await die('restore', '0', backup.path)) ?? 0), ...randomMoments()];
}

function stepsOf(operations: number): readonly string[] {
  return Array.from({ length: operations }, (_, index) => String(index + 1));
}

function randomMoments(): readonly Moment[] {
  return isLong ? Array.from({ length: 20 }, () => ({ afterMs: 200 + Math.floor(random() * 800) })) : [];
}

async function questionsIn(
  read: (sql: string) => Promise<readonly Record<string, unknown>[]>,
  sql: string,
): Promise<readonly string[]> {
  const rows = await read(sql);
  return rows.flatMap(({ content }) => JSON.stringify(content).match(/question-\d+-\d+/g) ?? []);
}

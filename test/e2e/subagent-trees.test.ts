/**
 * Random trees of sub-agents in one gateway and three workers: a worker is killed every second, and people steer and
 * stop the running agents. Part of `test:long`; PROOF_TREES: any number on each database, PROOF_SEED: the same moments
 * again.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Turn } from '../platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { findBreachesIn, quoted, type Read } from './conservation.ts';
import {
  type Installation,
  type InstallationOptions,
  type Member,
  openInstallation,
} from './installation.ts';
import { databaseServer } from './own-database.ts';
import { createRandom } from './random.ts';
import { isSubagent } from './subagent-play.ts';
import { until } from './until.ts';

const trees = Number(process.env.PROOF_TREES ?? 1_000);
const seed = Number(process.env.PROOF_SEED ?? Date.now() % 1e9);
const databases: readonly InstallationOptions['database'][] =
  databaseServer === undefined ? ['sqlite'] : ['postgres', 'sqlite'];
const workers = ['worker-1', 'worker-2', 'worker-3'] as const;
/** This many trees are at work at a time. */
const atOnce = 25;
const limits = { children: 3, nodes: 6, lifetime: 12, perClass: 5 };
const config = {
  lanes: {
    ...{ leaseMs: 2_000, renewMs: 500 },
    concurrency: Object.fromEntries([1, 2, 3].map((depth) => [`sub-${depth}`, limits.perClass])),
  },
  subagents: {
    ...{ maxSpawnDepth: 3, maxChildrenPerAgent: limits.children },
    tree: { nodes: limits.nodes, lifetime: limits.lifetime },
  },
  run: { maxAttempts: 20 },
  rateLimit: { perSenderPerMinute: 10_000 },
  replies: { preview: false },
};

describe.runIf(isLong || process.env.PROOF_TREES !== undefined).each(databases)(
  'trees of sub-agents in four processes on %s',
  (database) => {
    it('keeps trees of sub-agents within their limits, ends each child once, and answers once', {
      timeout: 7_200_000,
    }, async () => {
      const random = createRandom(seed);
      const opened = await openInstallation({ config, database }, (end) => onTestFinished(end));
      const parleys = { ...opened, read: oneByOne(opened.read) };
      parleys.model.script((body) => ({ ...turnFor(body), delayMs: 20 + Math.floor(random() * 200) }));
      await parleys.start('gateway', { role: 'gateway' });
      const members = new Map<string, Member>();
      for (const name of workers) members.set(name, await parleys.start(name, { role: 'worker' }));
      const storm = new AbortController();
      const watched = watchLimits(parleys, storm.signal);
      const meddled = meddle(parleys, { random, signal: storm.signal });
      const killed = killWorkers(parleys, { members, random, signal: storm.signal });
      const people = Array.from({ length: trees }, (_, index) => 40_001 + index);
      for (const person of people) {
        say(parleys, person, `tree-${person}`);
        await until(async () => (await openTrees(parleys)) < atOnce, { what: 'a tree ends' });
      }
      await until(async () => (await openTrees(parleys)) === 0, { what: 'all trees end' });
      storm.abort();
      const [looks, touched, kills] = await Promise.all([watched, meddled, killed]);
      await parleys.untilAtRest(trees, 120_000);
      const children = await parleys.read('select id from children');
      console.info(
        `${database}, seed ${seed}: ${trees} trees, ${children.length} sub-agents, ${kills} workers killed, ${touched.times} times steered or stopped, ${looks.length} breaches of a limit`,
      );
      expect(looks).toEqual([]);
      expect(await findBreachesIn(parleys.read, 'any')).toEqual([]);
      expect(await brokenChildren(parleys)).toEqual([]);
      const twice = people.filter((person) => answersTo(parleys, person) > 1);
      const missing = people.filter(
        (person) => answersTo(parleys, person) === 0 && !touched.stopped.has(person),
      );
      expect({ twice, missing: await notExcused(parleys, missing) }).toEqual({ twice: [], missing: [] });
      expect(parleys.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
    });
  },
);

const textsOf = (body: WireBody): readonly string[] =>
  body.messages.flatMap(blocksOf).flatMap(({ text, content }) => {
    const shown = typeof content === 'string' ? [content] : (content ?? []).map((one) => one.text ?? '');
    return [...(text === undefined ? [] : [text]), ...shown];
  });

/** The model's output depends on its input alone, so a repeated request gets the same answer. */
function turnFor(body: WireBody): Turn {
  const texts = textsOf(body);
  const task = texts.map((text) => /tree-\d+(?:\/\d)*/.exec(text)?.[0]).find((found) => found !== undefined);
  if (task === undefined) return { text: 'NO_REPLY' };
  const all = texts.join('\n');
  const dice = createRandom(hashOf(task));
  const count = Math.floor(dice() * 4);
  const depth = task.split('/').length;
  if (
    !all.includes('"status":') &&
    !all.includes('[Sub-agent') &&
    count > 0 &&
    depth <= 3 &&
    dice() < 1.1 - 0.2 * depth
  )
    return {
      toolCalls: Array.from({ length: count }, (_, n) => {
        const input = { task: `${task}/${n + 1}`, label: `${task}/${n + 1}`, wait: dice() < 0.4 };
        return { name: 'sessions_spawn', input };
      }),
    };
  const accepted = texts.flatMap(
    (text) => /^\{"status":"accepted","id":"([a-z2-7]{16})"/.exec(text)?.[1] ?? [],
  );
  const ended = new Set([...all.matchAll(/\[Sub-agent [^\n]*?\(([a-z2-7]{16})\): /g)].map(([, id]) => id));
  if (accepted.some((id) => !ended.has(id))) return { text: 'NO_REPLY' };
  return { text: isSubagent(body) ? `Result of ${task}.` : `Done: ${task}.` };
}

/** All reads of this test use one connection. */
function oneByOne(read: Read): Read {
  let last: Promise<unknown> = Promise.resolve();
  return (sql) => {
    const next = last.catch(() => undefined).then(() => read(sql));
    last = next;
    return next;
  };
}

function hashOf(text: string): number {
  return [...text].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 1_000_003, 7);
}

function say({ telegram }: Installation, person: number, text: string): void {
  telegram.people.sends({ from: { id: person, is_bot: false, first_name: `P${person}` }, text });
}

function answersTo({ telegram }: Installation, person: number): number {
  return telegram.botMessages(person).filter(({ text }) => text.includes(`Done: tree-${person}.`)).length;
}

/** Returns how many conversations still have work, in their own lane or below it. */
async function openTrees({ read, telegram }: Installation): Promise<number> {
  const [row] = await read(
    quoted(`select (select count(*) from lanes where runId is not null and class = 'main')
      + (select count(*) from inbox join lanes on lanes.key = inbox.laneKey
          where inbox.state <> 'ended' and lanes.class = 'main' and lanes.runId is null)
      + (select count(distinct treeId) from children where state <> 'done') as open`),
  );
  return Number(row?.open) + telegram.updates.pending.length;
}

/** Polls repeatedly; returns, in words, every time a limit was exceeded. */
async function watchLimits({ read }: Installation, signal: AbortSignal): Promise<readonly string[]> {
  const now =
    databaseServer === undefined || !(await isPostgres(read))
      ? `cast(unixepoch('subsec') * 1000 as integer)`
      : 'extract(epoch from clock_timestamp()) * 1000';
  const checks = {
    'children of one parent': `select parentSessionId as of, count(*) as many from children
      where state <> 'done' group by parentSessionId having count(*) > ${limits.children}`,
    'nodes of a tree': `select treeId as of, count(*) as many from children
      where state <> 'done' group by treeId having count(*) > ${limits.nodes}`,
    'children of a tree': `select treeId as of, count(*) as many from children
      group by treeId having count(*) > ${limits.lifetime}`,
    'running in a class': `select class as of, count(*) as many from lanes
      where class like 'sub-%' and runId is not null and holder is not null and leaseUntil > ${now}
      group by class having count(*) > ${limits.perClass}`,
  };
  const found: string[] = [];
  while (!signal.aborted) {
    for (const [what, sql] of Object.entries(checks))
      for (const row of await read(quoted(sql.replaceAll(' as of', ' as which'))))
        found.push(`${what}: ${JSON.stringify(row)}`);
    await pause(50);
  }
  return found;
}

async function isPostgres(read: Installation['read']): Promise<boolean> {
  return read('select clock_timestamp()').then(
    () => true,
    () => false,
  );
}

type Storm = { readonly random: () => number; readonly signal: AbortSignal };

/** People steer a sub-agent that is at work, or stop all of them. Returns whose answer may stay out. */
async function meddle(parleys: Installation, { random, signal }: Storm) {
  const stopped = new Set<number>();
  let times = 0;
  while (!signal.aborted) {
    await pause(200 + random() * 300);
    const live = await parleys.read(
      quoted(`select id, label from children where state <> 'done' order by id`),
    );
    const child = live[Math.floor(random() * live.length)];
    const person = Number(/tree-(\d+)/.exec(String(child?.label))?.[1]);
    if (!child || Number.isNaN(person)) continue;
    times += 1;
    const dice = random();
    if (dice < 0.15) stopped.add(person);
    const verb =
      dice < 0.1 ? '/stop' : dice < 0.15 ? '/new' : dice < 0.5 ? '/subagents stop' : '/subagents steer';
    const rest = verb.endsWith('stop') && verb !== '/stop' ? ` ${child.id}` : ` ${child.id} look again`;
    say(parleys, person, verb.startsWith('/subagents') ? `${verb}${rest}` : verb);
  }
  return { stopped, times };
}

type Killing = Storm & { readonly members: Map<string, Member> };

async function killWorkers(parleys: Installation, { members, random, signal }: Killing): Promise<number> {
  let kills = 0;
  while (!signal.aborted) {
    const name = workers[Math.floor(random() * workers.length)] ?? 'worker-1';
    await Promise.all([members.get(name)?.kill(), pause(1000)]);
    kills += 1;
    members.set(name, await parleys.start(name, { role: 'worker' }));
  }
  return kills;
}

/** Returns everything that isn't as it must be at rest, in words. */
async function brokenChildren({ read }: Installation): Promise<readonly string[]> {
  const announced = `(select count(*) from inbox where sourceKey = 'child:' || children.id)`;
  const checks = {
    'not ended': `select id, state from children where state <> 'done' or status is null or told is null`,
    'told otherwise than recorded': `select id, told from children
      where ${announced} <> (case when told = 'lane' then 1 else 0 end)`,
    'told a call that has no result': `select id from children where told = 'tool' and not exists
      (select 1 from toolCalls where runId = parentRunId and callId = parentCallId and state = 'done'
        and result like '%' || children.id || '%')`,
    'tree with live nodes': `select id, live from trees where live <> 0`,
    'tokens unlike those of its calls': `select id, promptTokens from children where promptTokens <>
      (select coalesce(sum(inputTokens + cacheReadTokens + cacheWriteTokens), 0) from modelCalls
        join runs on runs.id = modelCalls.runId where runs.laneKey = children.laneKey)`,
    'cost unlike that of all below': `select id, cost from sessions where cost <>
      (select coalesce(sum(cost), 0) from modelCalls where sessionId = sessions.id)
      + (select coalesce(sum(below.cost), 0) from sessions as below where below.parentSessionId = sessions.id)`,
  };
  const found: string[] = [];
  for (const [what, sql] of Object.entries(checks))
    for (const row of await read(quoted(sql))) found.push(`${what}: ${JSON.stringify(row)}`);
  return found;
}

/** Returns the people without an answer that no interrupted send explains. */
async function notExcused({ read }: Installation, people: readonly number[]): Promise<readonly number[]> {
  const rows = await read(quoted(`select content from outbox where state = 'unknown'`));
  const unsure = rows.map(({ content }) => JSON.stringify(content)).join('\n');
  return people.filter((person) => !unsure.includes(`Done: tree-${person}.`));
}

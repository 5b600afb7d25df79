/**
 * Two processes on one database. One of them, the other, or their Redis is stopped in turn (SIGSTOP) for
 * longer than its locks last, while people write. The stopped one resumes and finds that another has
 * taken over.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Account } from './crowd-report.ts';
import { countTakeovers, type InstallationOptions, openInstallation } from './installation.ts';
import { createRandom } from './random.ts';
import { untilServing } from './redis-faults.ts';
import { answerSlowly, isFollowup, settingsFor, startTalking } from './talk.ts';

/** `pauses`: the minimum. */
export type PauseRound = { readonly pauses: number; readonly seed: number };

export type PauseReport = Account & {
  readonly messages: number;
  readonly pauses: number;
  /** Runs that another process continued. */
  readonly takeovers: number;
  /** Runs that learned, at a write or when renewing their lease, that another process has them now. */
  readonly refused: number;
};

const leaseMs = 600;
/** BullMQ gives a job to another worker once its lock has expired and the scan finds it. */
const redisLockMs = 5_000;
const people = Array.from({ length: 60 }, (_, index) => 20_001 + index);
const config = {
  ...settingsFor(people),
  lanes: { leaseMs, renewMs: 200, concurrency: { main: 8 } },
};

export async function playPauseRound(
  { pauses, seed }: PauseRound,
  database: InstallationOptions['database'],
  atEnd: (end: () => Promise<void>) => void,
): Promise<PauseReport> {
  const random = createRandom(seed);
  const parleys = await openInstallation({ config, database }, atEnd);
  parleys.model.script((body) => answerSlowly(body, random));
  const members = [await parleys.start('a'), await parleys.start('b')] as const;
  const redisPid = await untilServing(parleys.redis.socketPath);
  const quiet = new AbortController();
  const { onTheWay } = parleys;
  const talking = { people, count: 1e6, perSecond: 15, onTheWay, random, signal: quiet.signal };
  const talk = startTalking(parleys.telegram, talking);
  const refusals = () =>
    ['a', 'b'].flatMap((name) => parleys.logOf(name).match(/run\.superseded|"stop":"lost"/g) ?? []).length;
  // However fast the machine is: until one process has taken over and the other was rejected.
  const hasMet = async () => refusals() > 0 && (await countTakeovers(parleys)) > 0;
  let nth = 0;
  for (; nth < pauses || !(await hasMet()); nth++) {
    // Every tenth pause is for Redis; the first of these is the third of a round.
    const isRedis = nth % 10 === 2;
    const pid = isRedis ? redisPid : members[random() < 0.7 ? 0 : 1].pid;
    const heldMs = isRedis ? redisLockMs : leaseMs;
    await pause(300 + random() * 500);
    process.kill(pid, 'SIGSTOP');
    await pause(heldMs * (1.1 + random() * 1.5));
    process.kill(pid, 'SIGCONT');
  }
  quiet.abort();
  await talk.over;
  await parleys.untilAtRest(talk.asked.length, 120_000);
  const takeovers = await countTakeovers(parleys);
  const account = await parleys.account(talk.asked, isFollowup);
  for (const member of members) await member.stop();
  return { ...account, messages: talk.asked.length, pauses: nth, takeovers, refused: refusals() };
}

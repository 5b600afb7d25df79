/**
 * Two processes on one database. One of them, the other, or their Redis is stopped in turn (SIGSTOP) for
 * longer than its locks last, while people write. The stopped one resumes and finds that another has
 * taken over.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { endsInResult, type WireBody } from '../platforms/anthropic/wire.ts';
import type { Account } from './crowd-report.ts';
import { countTakeovers, type InstallationOptions, openInstallation } from './installation.ts';
import { answerTo, questionOf } from './questions.ts';
import { createRandom } from './random.ts';
import { untilServing } from './redis-faults.ts';
import { startTalking } from './talk.ts';

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

export async function playPauseRound(
  { pauses, seed }: PauseRound,
  database: InstallationOptions['database'],
  atEnd: (end: () => Promise<void>) => void,
): Promise<PauseReport> {
  const random = createRandom(seed);
  const parleys = await openInstallation({ config, database }, atEnd);
  parleys.model.script((body) => reply(body, random));
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
  const effects = parleys.effects();
  const account = await parleys.account(talk.asked, isFollowup);
  const repeated = effects.filter((effect, index) => effects.indexOf(effect) !== index);
  const wrong = [...account.wrong, ...repeated.map((effect) => `executed twice: ${effect}`)];
  for (const member of members) await member.stop();
  return { ...account, wrong, messages: talk.asked.length, pauses: nth, takeovers, refused: refusals() };
}

/** Half of the people run each message on its own, half steer the active run. */
function isFollowup(person: number): boolean {
  return person % 2 === 0;
}

const config = {
  lanes: { leaseMs, renewMs: 200, concurrency: { main: 8 } },
  run: { maxAttempts: 20 },
  rateLimit: { perSenderPerMinute: 10_000 },
  queue: {
    dm: { mode: 'steer', cap: 1000 },
    conversations: Object.fromEntries(
      people.filter(isFollowup).map((person) => [`telegram:${person}`, { mode: 'followup' }]),
    ),
  },
  replies: { preview: false },
  channels: { web: { enabled: false }, terminal: { enabled: false } },
};

/** In `followup` mode every fourth question first needs a tool that must not run twice. */
function reply(body: WireBody, random: () => number): Reply {
  const question = questionOf(body);
  const [, person = '1', number = '1'] = question.split('-');
  const hasResult = endsInResult(body);
  const delayMs = 50 + Math.floor(random() * 400);
  if (isFollowup(Number(person)) && Number(number) % 4 === 0 && !hasResult)
    return { toolCalls: [{ name: 'once' }], delayMs };
  return { text: answerTo(question), delayMs };
}

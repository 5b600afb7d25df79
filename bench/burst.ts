import { setTimeout as sleep } from 'node:timers/promises';
import { now } from './clock.ts';
import type { Figure } from './figure.ts';
import type { ModelCall } from './model.ts';
import type { Network } from './network.ts';
import type { Bench, Both } from './pair.ts';
import { cpuMs } from './process-figures.ts';
import { median } from './statistics.ts';

const chats = 200;
const perChat = 3;
const deadlineMs = 120_000;

/** (4) Measures 600 messages to 200 chats at once. Throws when one is lost, doubled or out of order. */
export async function measureBurst(
  [floor, parley]: Both,
  { repeats, name }: { readonly repeats: number; readonly name: string },
): Promise<readonly Figure[]> {
  const of = { floor: [await oneBurst(floor, 0)], parley: [await oneBurst(parley, 0)] };
  // The first burst of each is a warm-up, since a gateway runs for weeks.
  of.floor.pop();
  of.parley.pop();
  for (let repeat = 1; repeat <= repeats; repeat++) {
    of.floor.push(await oneBurst(floor, repeat));
    of.parley.push(await oneBurst(parley, repeat));
  }
  const middle = (key: keyof Burst) => ({
    floor: median(of.floor.map((one) => one[key])),
    parley: median(of.parley.map((one) => one[key])),
  });
  const redis = median(of.parley.map((one) => one.redisMs));
  return [
    { name: `${name}: messages per second`, unit: '/s', ...middle('perSecond'), target: '≥ 0.5 × floor' },
    { name: `${name}: processor time per message`, unit: 'ms', ...middle('cpuMs'), target: '≤ 2.3 × floor' },
    { name: `${name}: the private Redis, per message`, unit: 'ms', parley: redis, target: '' },
    {
      name: `${name}: model calls per message`,
      unit: '',
      ...middle('calls'),
      target: 'steering merges messages',
    },
  ];
}

type Burst = {
  readonly perSecond: number;
  readonly cpuMs: number;
  readonly redisMs: number;
  readonly calls: number;
};

async function oneBurst({ subject, model, networks: [network] }: Bench, number: number): Promise<Burst> {
  const first = 100_000 + number * chats;
  const requests: ModelCall[] = [];
  model.answerWith((call) => {
    requests.push(call);
    return { text: `Heard: ${call.texts.at(-1)}` };
  });
  await network.untilQuiet();
  await sleep(500);
  const cpuBefore = cpuMs(subject.pid);
  const redisBefore = subject.redisPid === undefined ? 0 : cpuMs(subject.redisPid);
  const answered = untilAnswered(network, first);
  const begin = now();
  network.atOnce(() => {
    for (let message = 1; message <= perChat; message++) {
      for (let chat = first; chat < first + chats; chat++) network.say(chat, textOf(chat, message));
    }
  });
  const end = await answered;
  // The last commits follow the last answer.
  await sleep(300);
  const count = chats * perChat;
  checkRequests(requests, first);
  checkAnswers(network, first);
  return {
    perSecond: (count / (end - begin)) * 1000,
    cpuMs: (cpuMs(subject.pid) - cpuBefore) / count,
    redisMs: subject.redisPid === undefined ? 0 : (cpuMs(subject.redisPid) - redisBefore) / count,
    calls: requests.length / count,
  };
}

function textOf(chat: number, message: number): string {
  return `chat ${chat} message ${message}.`;
}

/** Resolves with the moment at which the last message of the last chat was answered. */
function untilAnswered(network: Network, first: number): Promise<number> {
  const open = new Set(Array.from({ length: chats }, (_, index) => first + index));
  return network.follow(({ person, text }) => {
    if (text.includes(textOf(person, perChat))) open.delete(person);
    return open.size === 0 ? now() : undefined;
  }, deadlineMs);
}

/** Asserts that each request contains its chat's messages from the first on, in order, none twice, none missing. */
function checkRequests(requests: readonly ModelCall[], first: number): void {
  const heard = new Map<number, number>();
  for (const { texts } of requests) {
    const joined = texts.join('\n');
    const said = [...joined.matchAll(/chat (\d+) message (\d+)\./g)].map(
      ([, chat, message]) => [Number(chat), Number(message)] as const,
    );
    const [chat = 0] = said[0] ?? [];
    const isWhole = said.every(([from, message], index) => from === chat && message === index + 1);
    if (!isWhole) throw new Error(`a turn does not see its chat in order:\n${joined}`);
    heard.set(chat, Math.max(heard.get(chat) ?? 0, said.length));
  }
  for (let chat = first; chat < first + chats; chat++) {
    if (heard.get(chat) !== perChat) throw new Error(`chat ${chat}: ${heard.get(chat)} of ${perChat} heard`);
  }
}

/** Asserts that no answer came twice, and that a chat's answers follow the order of its messages. */
function checkAnswers(network: Network, first: number): void {
  for (let chat = first; chat < first + chats; chat++) {
    const answers = network.answersTo(chat);
    const isInOrder = answers.every((text, index) => index === 0 || text > (answers[index - 1] ?? ''));
    if (!isInOrder || answers.length === 0 || answers.length > perChat)
      throw new Error(`${network.name}, chat ${chat}: ${JSON.stringify(answers)}`);
  }
}

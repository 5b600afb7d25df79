import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcessAddresses } from '../src/processes/process-address.ts';
import { now } from './clock.ts';
import type { Figure } from './figure.ts';
import type { Bench } from './pair.ts';
import { cpuMs } from './process-figures.ts';
import { median } from './statistics.ts';

const callers = 100;
const deadlineMs = 60_000;

type Round = { readonly perSecond: number; readonly cpuMs: number };

/**
 * Measures 100 calls of `/v1/responses` at once, each a conversation of its own, beside 100 messages of 100 Telegram
 * chats at once, in alternating rounds on the same gateway. Throws when an answer isn't that of its question.
 */
export async function measureResponses(parley: Bench, repeats: number): Promise<readonly Figure[]> {
  const ask = await askerOf(parley);
  parley.model.answerWith(({ texts }) => ({ text: `Heard: ${texts.at(-1)}` }));
  const chats: Round[] = [];
  const calls: Round[] = [];
  for (let round = 0; round <= repeats; round++) {
    chats.push(await measured(parley, () => oneOfChats(parley, 200_000 + round * callers)));
    calls.push(await measured(parley, () => oneOfCalls(ask, round)));
  }
  const middle = (rounds: readonly Round[], key: keyof Round) =>
    // The first round is a warm-up.
    median(rounds.slice(1).map((one) => one[key]));
  const figure = (name: string, unit: string, parley: number, target = ''): Figure => ({
    ...{ name, unit, parley, target },
  });
  const [throughChats, throughCalls] = [middle(chats, 'perSecond'), middle(calls, 'perSecond')];
  return [
    figure(`${callers} Telegram chats at once: messages per second`, '/s', throughChats),
    figure(`${callers} calls of /v1/responses at once: calls per second`, '/s', throughCalls),
    figure('calls per message', '', throughCalls / throughChats),
    figure('processor time per message', 'ms', middle(chats, 'cpuMs')),
    figure('processor time per call', 'ms', middle(calls, 'cpuMs')),
  ];
}

type Ask = (input: string) => Promise<string>;

async function askerOf({ subject }: Bench): Promise<Ask> {
  const dataDir = join(subject.home, 'data');
  const [gateway] = await readProcessAddresses(dataDir);
  const token = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
  return async (input) => {
    const answer = await fetch(`${gateway?.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'main', input }),
      signal: AbortSignal.timeout(deadlineMs),
    });
    return answer.text();
  };
}

async function measured({ subject, networks: [network] }: Bench, act: () => Promise<void>): Promise<Round> {
  await network.untilQuiet();
  await sleep(500);
  const [cpuBefore, begin] = [cpuMs(subject.pid), now()];
  await act();
  const durationMs = now() - begin;
  // The last commits follow the last answer.
  await sleep(300);
  return {
    perSecond: (callers / durationMs) * 1000,
    cpuMs: (cpuMs(subject.pid) - cpuBefore) / callers,
  };
}

async function oneOfCalls(ask: Ask, round: number): Promise<void> {
  const inputs = Array.from({ length: callers }, (_, index) => `round ${round} call ${index}.`);
  const answers = await Promise.all(inputs.map(ask));
  const wrong = answers.find((text, index) => !text.includes(`Heard: ${inputs[index]}`));
  if (wrong !== undefined) throw new Error(`a call got ${wrong.slice(0, 500)}`);
}

async function oneOfChats({ networks: [network] }: Bench, first: number): Promise<void> {
  const open = new Set(Array.from({ length: callers }, (_, index) => first + index));
  const answered = network.follow(({ person, text }) => {
    if (text.includes(`Heard: chat ${person}.`)) open.delete(person);
    return open.size === 0 ? true : undefined;
  }, deadlineMs);
  network.atOnce(() => {
    for (const person of open) network.say(person, `chat ${person}.`);
  });
  await answered;
}

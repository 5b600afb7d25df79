/** People who write to the bot one after the other, whether or not anybody answers. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Turn } from '../platforms/anthropic/turn.ts';
import { endsInResult, type WireBody } from '../platforms/anthropic/wire.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import { type Asked, questionBy } from './crowd-report.ts';
import { answerTo, questionOf } from './questions.ts';

export type Talk = {
  readonly asked: readonly Asked[];
  /** Resolves when `count` messages have been said, or soon after the signal. */
  readonly over: Promise<void>;
};

export type Talking = {
  readonly people: readonly number[];
  /** The maximum number of messages. */
  readonly count: number;
  /** The maximum rate of all people together. */
  readonly perSecond: number;
  /** Returns how many messages are unfinished; above a few, nothing more is said. Absent: no limit. */
  readonly onTheWay?: () => Promise<number>;
  readonly random: () => number;
  readonly signal: AbortSignal;
};

/** Gives a slow machine more time instead of a longer queue. */
const maxInFlight = 60;

export function startTalking(
  telegram: TelegramServer,
  { people, count, perSecond, onTheWay, random, signal }: Talking,
): Talk {
  const { asked, say } = gatherAskers(telegram, { people, random });
  const speak = async () => {
    let looked = performance.now();
    let due = 0;
    while (asked.length < count && !signal.aborted) {
      const now = performance.now();
      due = Math.min(count, due + ((now - looked) / 1000) * perSecond);
      looked = now;
      while (asked.length < due) say();
      await pause(50 + random() * 50);
      while (onTheWay && !signal.aborted && (await onTheWay()) > maxInFlight) {
        await pause(50);
        looked = performance.now();
      }
    }
  };
  return { asked, over: speak() };
}

/** `say`: one of them asks their next question. */
export function gatherAskers(
  telegram: TelegramServer,
  { people, random }: Pick<Talking, 'people' | 'random'>,
): { readonly asked: readonly Asked[]; say(): void } {
  const asked: Asked[] = [];
  const saidBy = new Map<number, number>();
  const say = () => {
    const person = people[Math.floor(random() * people.length)] ?? 0;
    const number = (saidBy.get(person) ?? 0) + 1;
    saidBy.set(person, number);
    const question = questionBy(person, number);
    asked.push({ person, question });
    telegram.people.sends({ from: { id: person, is_bot: false, first_name: `P${person}` }, text: question });
  };
  return { asked, say };
}

/** A third runs each message on its own, a third steers, a third collects. */
function modeOf(person: number): 'followup' | 'steer' | 'collect' {
  return (['followup', 'steer', 'collect'] as const)[person % 3] ?? 'followup';
}

export function isFollowup(person: number): boolean {
  return modeOf(person) === 'followup';
}

/** Attempts that a run has. */
export const maxAttempts = 20;

/** Settings for people who write without pause to processes that die. */
export function settingsFor(people: readonly number[]) {
  const conversations = people.map((person) => [`telegram:${person}`, { mode: modeOf(person), quietMs: 0 }]);
  return {
    run: { maxAttempts },
    rateLimit: { perSenderPerMinute: 10_000 },
    queue: { dm: { cap: 1000 }, conversations: Object.fromEntries(conversations) },
    replies: { preview: false },
  };
}

/** The model takes a while. In `followup` mode, every fourth question first needs a tool that must not run twice. */
export function answerSlowly(body: WireBody, random: () => number, [fromMs, toMs] = [50, 450]): Turn {
  const question = questionOf(body);
  const [, person, number] = question.split('-').map(Number);
  const delayMs = Math.floor(fromMs + random() * (toMs - fromMs));
  if (isFollowup(person ?? 0) && (number ?? 0) % 4 === 0 && !endsInResult(body))
    return { toolCalls: [{ name: 'once' }], delayMs };
  return { chunks: answerTo(question).match(/.{1,8}/g) ?? [], delayMs };
}

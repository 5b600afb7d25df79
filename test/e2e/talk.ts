/** People who write to the bot one after the other, whether or not anybody answers. */
import { setTimeout as pause } from 'node:timers/promises';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import { type Asked, questionBy } from './crowd-report.ts';

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
const mostOnTheWay = 60;

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
      while (onTheWay && !signal.aborted && (await onTheWay()) > mostOnTheWay) {
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

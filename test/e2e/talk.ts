/** People who write to the bot one after the other, whether anybody answers or not. */
import { setTimeout as pause } from 'node:timers/promises';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import { type Asked, questionBy } from './account.ts';

export type Talk = {
  readonly asked: readonly Asked[];
  /** Resolves when `count` messages were said, or soon after the signal. */
  readonly over: Promise<void>;
};

export type Talking = {
  readonly people: readonly number[];
  /** Messages at most. */
  readonly count: number;
  /** Of all of them together. */
  readonly perSecond: number;
  readonly random: () => number;
  readonly signal: AbortSignal;
};

export function startTalking(
  telegram: TelegramServer,
  { people, count, perSecond, random, signal }: Talking,
): Talk {
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
  const speak = async () => {
    const began = performance.now();
    while (asked.length < count && !signal.aborted) {
      const due = Math.min(count, ((performance.now() - began) / 1000) * perSecond);
      while (asked.length < due) say();
      await pause(random() * 40);
    }
  };
  return { asked, over: speak() };
}

import { createGate, type Gate } from '../platforms/anthropic/gate.ts';
import type { AnthropicServer } from '../platforms/anthropic/server.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import { countTold, findBreaches } from './conservation.ts';
import { type Person, telegramPerson } from './person.ts';

/** Several people who write to the bot at the same time, and what they can expect. */
export type Crowd = {
  /** Everybody sends one more message, each with its own text. */
  speaks(): void;
  /** How many messages were sent. */
  count(): number;
  /** How many of them have their answer. */
  answered(): number;
  /** Returns every breach at rest: of the conservation law, or a text that wasn't answered exactly once. */
  breaches(dataDir: string): readonly string[];
};

/** Distinguishes a crowd from another one on the same gateway. */
export type CrowdOptions = {
  /** Part of its texts. */
  readonly name?: string;
  /** Id of its first person; the others follow. */
  readonly firstId?: number;
};

/** Needs a model that repeats what it is told (as the local one does), one run per message, and open DMs. */
export function gatherCrowd(
  telegram: TelegramServer,
  size: number,
  { name, firstId = 1001 }: CrowdOptions = {},
): Crowd {
  const people = Array.from({ length: size }, (_, index) => telegramPerson(telegram, firstId + index));
  return crowdOf(people, name);
}

/** The same for people on any network; `name` keeps the texts of two crowds apart. */
export function crowdOf(people: readonly Person[], name = 'Person'): Crowd {
  const sent: { readonly person: Person; readonly text: string }[] = [];
  const timesAnswered = ({ person, text }: (typeof sent)[number]) =>
    person.standing().filter((answer) => answer === `You said: ${text}`).length;
  return {
    speaks: () => {
      for (const [index, person] of people.entries()) {
        const text = `${name} ${index} says no ${sent.length}.`;
        sent.push({ person, text });
        person.says(text);
      }
    },
    count: () => sent.length,
    answered: () => sent.filter((message) => timesAnswered(message) > 0).length,
    breaches: (dataDir) => {
      const told = countTold(
        dataDir,
        sent.map(({ text }) => text),
      );
      return [
        ...findBreaches(dataDir),
        ...sent.flatMap((message, index) => [
          ...(timesAnswered(message) === 1
            ? []
            : [`answered ${timesAnswered(message)} times: ${message.text}`]),
          ...(told[index] === 1 ? [] : [`${told[index]} times in the transcript: ${message.text}`]),
        ]),
      ];
    },
  };
}

/** A crowd whose answers all wait at the gate. */
export async function crowdAtWork(
  { telegram, model }: { readonly telegram: TelegramServer; readonly model: AnthropicServer },
  size: number,
  options: CrowdOptions = {},
): Promise<{ readonly crowd: Crowd; readonly gate: Gate }> {
  const crowd = gatherCrowd(telegram, size, options);
  const asked = model.requests.length;
  const gate = createGate();
  model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
  crowd.speaks();
  await model.waitForRequest(asked + size);
  return { crowd, gate };
}

/** Settings for a crowd. */
export const forCrowd = {
  access: { dmPolicy: 'open' },
  queue: { dm: { mode: 'followup', cap: 200 } },
} as const;

import { setTimeout as sleep } from 'node:timers/promises';
import { openDiscordSide } from '../test/e2e/discord-side.ts';
import { discordRates } from '../test/platforms/discord/rates.ts';
import { telegramRates } from '../test/platforms/telegram/rates.ts';
import { startTelegramServer } from '../test/platforms/telegram/server.ts';
import { now } from './clock.ts';
import type { Figure } from './figure.ts';
import { startModel } from './model.ts';
import { type Network, titleOf } from './network.ts';
import { discordOn } from './networks/discord.ts';
import { telegramOn } from './networks/telegram.ts';
import { platformsOf } from './platforms.ts';
import { median } from './statistics.ts';
import { startParley } from './subject.ts';

/** A network that enforces the limits of the real one. `read` says what a call is; undefined for all others. */
type LimitedNetwork = {
  readonly network: Network;
  readonly perSecond: number;
  calls(): readonly LimitedCall[];
};

type LimitedCall = { readonly kind: 'answer' | 'preview' | 'sign'; readonly status: number };

const deadlineMs = 240_000;
const [pieces, pieceMs] = [40, 200];

/**
 * All conversations ask at once, and the model writes each answer for eight seconds, so that previews alone would
 * exceed what the network allows a bot. Throws if an answer is lost.
 */
export async function measureStorm(conversations: number): Promise<readonly Figure[]> {
  return [
    ...(await stormOn(await limitedTelegram(), conversations)),
    ...(await stormOn(await limitedDiscord(), conversations)),
  ];
}

async function limitedTelegram(): Promise<LimitedNetwork> {
  const server = await startTelegramServer({ now, rates: telegramRates });
  const kinds = { sendMessage: 'answer', sendMessageDraft: 'preview', sendChatAction: 'sign' } as const;
  const known = new Map<string, LimitedCall['kind']>(Object.entries(kinds));
  return {
    network: telegramOn(server),
    perSecond: telegramRates.perSecond,
    calls: () =>
      server.calls.flatMap(({ method, status }) => {
        const kind = known.get(method);
        return kind ? [{ kind, status }] : [];
      }),
  };
}

async function limitedDiscord(): Promise<LimitedNetwork> {
  const side = await openDiscordSide('', { now, rates: discordRates });
  return {
    network: discordOn(side),
    perSecond: discordRates.global.limit,
    calls: () =>
      side.server.calls.flatMap(({ route, body, status }): readonly LimitedCall[] => {
        const isWhole = String(Object(body).content).endsWith(lastWord);
        if (route.startsWith('POST') && route.endsWith('/typing')) return [{ kind: 'sign', status }];
        if (!/messages/.test(route) || route.startsWith('GET')) return [];
        return [{ kind: isWhole ? 'answer' : 'preview', status }];
      }),
  };
}

const lastWord = 'the end.';

async function stormOn(
  { network, perSecond, calls }: LimitedNetwork,
  conversations: number,
): Promise<readonly Figure[]> {
  const model = await startModel();
  const platforms = platformsOf(model, [network]);
  const settings = { lanes: { concurrency: { main: conversations } } };
  const parley = await startParley(platforms, { settings });
  try {
    const chunks = [...Array.from({ length: pieces - 1 }, () => 'some more words of the answer. '), lastWord];
    /** When each answer is written to its end, by the person's number. */
    const writtenAt = new Map<number, number>();
    model.answerWith(({ at, texts }) => {
      writtenAt.set(Number(texts.at(-1)?.split(' ').at(-1)), at + pieces * pieceMs);
      return { chunks, chunkDelayMs: pieceMs };
    });
    await network.untilQuiet();
    const people = Array.from({ length: conversations }, (_, index) => 50_001 + index);
    network.atOnce(() => {
      for (const person of people) network.say(person, `Tell ${person}`);
    });
    const answeredAt = await untilAnswered(network, people);
    const lateMs = people.map(
      (person) => (answeredAt.get(person) ?? 0) - (writtenAt.get(person) ?? Number.NaN),
    );
    return figuresOf(titleOf[network.name], { calls: calls(), lateMs, conversations, perSecond });
  } finally {
    await parley.end();
    await platforms.close();
  }
}

/** Returns when each answer was seen complete in its chat. */
async function untilAnswered(
  network: Network,
  people: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const answeredAt = new Map<number, number>();
  const until = now() + deadlineMs;
  while (answeredAt.size < people.length) {
    if (now() > until)
      throw new Error(`${network.name}: ${people.length - answeredAt.size} answers are missing`);
    for (const person of people) {
      if (answeredAt.has(person)) continue;
      if (network.answersTo(person).some((text) => text.endsWith(lastWord))) answeredAt.set(person, now());
    }
    await sleep(20);
  }
  return answeredAt;
}

type Storm = {
  readonly calls: ReturnType<LimitedNetwork['calls']>;
  readonly lateMs: readonly number[];
  readonly conversations: number;
  readonly perSecond: number;
};

function figuresOf(name: string, { calls, lateMs, conversations, perSecond }: Storm): readonly Figure[] {
  const count = (kind: string, isLimited: boolean) =>
    calls.filter((call) => call.kind === kind && (call.status === 429) === isLimited).length;
  const least = conversations / perSecond;
  const figure = (what: string, unit: string, parley: number, target = '') => ({
    ...{ name: `${name}: ${what}`, unit, parley, target },
  });
  return [
    figure('previews shown, per answer', '', count('preview', false) / conversations),
    figure('typing shown, per answer', '', count('sign', false) / conversations),
    figure('previews refused (429)', '', count('preview', true) + count('sign', true), 'few'),
    figure('answers refused (429)', '', count('answer', true), 'few'),
    figure('last word → answer, median', 's', median(lateMs) / 1_000),
    figure(
      'last word → last answer',
      's',
      Math.max(...lateMs) / 1_000,
      `${least.toFixed(1)} s of calls at the limit`,
    ),
  ];
}

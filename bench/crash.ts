import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from './figure.ts';
import { botSays } from './network.ts';
import { startPlatforms } from './platforms.ts';
import { aHome, startParley } from './subject.ts';

const inFlight = 20;
const modelMs = 3000;

/** (8) Measures `kill -9` with 20 turns at a 3 s model: from readiness of the next start to the last answer. */
export async function measureCrash(): Promise<readonly Figure[]> {
  const platforms = await startPlatforms('telegram');
  const {
    model,
    networks: [network],
  } = platforms;
  const home = await aHome();
  try {
    model.answerWith(({ texts }) => ({ text: `Heard: ${texts.at(-1)}`, delayMs: modelMs }));
    const first = await startParley(platforms, { home });
    const asked = Array.from({ length: inFlight }, (_, index) => `question ${index}.`);
    const heard = asked.map((text) => model.hears(text));
    for (const [index, text] of asked.entries()) network.say(50_000 + index, text);
    await Promise.all(heard);
    await sleep(500);
    const answers = asked.map((text, index) => botSays(network, 50_000 + index, text, 40_000));
    await first.kill();
    const second = await startParley(platforms, { home });
    const arrivals = (await Promise.all(answers)).map(({ at }) => at - second.readyAt);
    await second.end();
    return [
      {
        name: 'kill -9 with 20 in flight: last answer after readiness',
        unit: 'ms',
        parley: Math.max(...arrivals),
        target: '≤ 5000 ms, with a 3000 ms model',
      },
    ];
  } finally {
    await platforms.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

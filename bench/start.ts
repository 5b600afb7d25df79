import type { Figure } from './figure.ts';
import { startPlatforms } from './platforms.ts';
import { median } from './statistics.ts';
import { startParley } from './subject.ts';

/** (5) From the start of the process to its first reply, with an update waiting and an empty data folder. */
export async function measureStart(repeats: number): Promise<readonly Figure[]> {
  // One more in front: it may be the first after an installation or a change.
  await oneStart(true);
  const byNpm: number[] = [];
  const bare: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    byNpm.push(await oneStart(true));
    bare.push(await oneStart(false));
  }
  return [
    { name: 'npm start → first reply', unit: 'ms', parley: median(byNpm), target: '≤ 1300 ms' },
    { name: 'the same without npm', unit: 'ms', parley: median(bare), target: '' },
  ];
}

async function oneStart(isByNpm: boolean): Promise<number> {
  const platforms = await startPlatforms();
  try {
    platforms.say(77, 'anybody there?');
    const reply = platforms.botSays(77, 'anybody there?');
    const subject = await startParley(platforms, { isByNpm });
    try {
      return (await reply).at - subject.startedAt;
    } finally {
      await subject.end();
    }
  } finally {
    await platforms.close();
  }
}

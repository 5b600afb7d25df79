import { type Platforms, startPlatforms } from './platforms.ts';
import { type Subject, type SubjectOptions, startFloor, startParley } from './subject.ts';

/** A system and the platforms it talks to. */
export type Bench = { readonly subject: Subject; readonly platforms: Platforms };

export async function withParley<T>(
  options: SubjectOptions,
  measure: (bench: Bench) => Promise<T>,
): Promise<T> {
  return withBench((platforms) => startParley(platforms, options), measure);
}

/** Both systems at once, so that rounds can alternate and the machine's mood strikes both alike. */
export async function withBoth<T>(
  options: SubjectOptions,
  measure: (benches: readonly [Bench, Bench]) => Promise<T>,
): Promise<T> {
  return withBench(startFloor, (floor) => withParley(options, (parley) => measure([floor, parley])));
}

async function withBench<T>(
  start: (platforms: Platforms) => Promise<Subject>,
  measure: (bench: Bench) => Promise<T>,
): Promise<T> {
  const platforms = await startPlatforms();
  try {
    const subject = await start(platforms);
    try {
      return await measure({ subject, platforms });
    } finally {
      await subject.end();
    }
  } finally {
    await platforms.close();
  }
}

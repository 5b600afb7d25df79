import type { Model } from './model.ts';
import type { Network, NetworkName } from './network.ts';
import { type AtLeastOne, type Platforms, startPlatforms } from './platforms.ts';
import { type Subject, type SubjectOptions, startFloor, startParley } from './subject.ts';

/** A system, and the model and the networks that it talks to. */
export type Bench = {
  readonly subject: Subject;
  readonly model: Model;
  readonly networks: AtLeastOne<Network>;
};

/** The floor and Parley, each with a model and a network of its own. */
export type Both = readonly [Bench, Bench];

export async function withParley<T>(
  names: AtLeastOne<NetworkName>,
  measure: (bench: Bench) => Promise<T>,
  options: SubjectOptions = {},
): Promise<T> {
  return withBench(names, (platforms) => startParley(platforms, options), measure);
}

/** Both systems at once, so that rounds can alternate and the machine's mood strikes both alike. */
export async function withBoth<T>(
  name: NetworkName,
  measure: (benches: Both) => Promise<T>,
  options: SubjectOptions = {},
): Promise<T> {
  return withBench([name], startFloor, (floor) =>
    withParley([name], (parley) => measure([floor, parley]), options),
  );
}

async function withBench<T>(
  names: AtLeastOne<NetworkName>,
  start: (platforms: Platforms) => Promise<Subject>,
  measure: (bench: Bench) => Promise<T>,
): Promise<T> {
  const platforms = await startPlatforms(...names);
  try {
    const subject = await start(platforms);
    try {
      return await measure({ subject, ...platforms });
    } finally {
      await subject.end();
    }
  } finally {
    await platforms.close();
  }
}

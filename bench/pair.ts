import type { Model } from './model.ts';
import type { Network, NetworkName } from './network.ts';
import { type AtLeastOne, type Platforms, startPlatforms } from './platforms.ts';
import { type Subject, type SubjectOptions, startFloor, startParley } from './subject.ts';

/** A system, with the model and the networks that it talks to. */
export type Bench = {
  readonly subject: Subject;
  readonly model: Model;
  readonly networks: AtLeastOne<Network>;
};

/** The floor and Parley, each with its own model and network. */
export type Both = readonly [Bench, Bench];

export async function withParley<T>(
  names: AtLeastOne<NetworkName>,
  measure: (bench: Bench) => Promise<T>,
  options: SubjectOptions = {},
): Promise<T> {
  return withBench(names, (platforms) => startParley(platforms, options), measure);
}

/** Runs both systems at the same time, so that rounds can alternate and load on the machine affects both equally. */
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

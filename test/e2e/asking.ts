import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { untilAtRest } from './conservation.ts';
import type { Stage } from './stage.ts';
import { until } from './until.ts';

/** Does this, waits for the answer, and returns what the model was shown. */
export async function readAfter({ model, dataDir }: Stage, act: () => unknown): Promise<WireBody> {
  const { requests } = model;
  const before = requests.length;
  act();
  await until(() => requests.length > before, { what: 'the request to the model' });
  await untilAtRest(dataDir, 1);
  const { body } = requests.at(-1) ?? {};
  if (body === undefined) throw new Error('the model was asked nothing');
  return body;
}

/** Returns how many images a request contains. */
export function imagesIn({ messages }: WireBody): number {
  return messages.flatMap((message) => blocksOf(message)).filter(({ type }) => type === 'image').length;
}

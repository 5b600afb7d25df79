/**
 * `npm run bench [-- <part> …] [--write] [--quick]`: measures Parley beside the bare floor. `--write` puts
 * the result into docs/benchmarks.md. The figures are printed, never asserted; a lost, doubled or
 * disordered message ends the run with an error.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measureBurst } from './burst.ts';
import { measureCrash } from './crash.ts';
import type { Figure } from './figure.ts';
import { measureAdded, measureLatency } from './latency.ts';
import { measureMemory } from './memory.ts';
import { withBoth, withParley } from './pair.ts';
import { renderMarkdown, renderText } from './report.ts';
import { measureStart } from './start.ts';
import { measureSteer } from './steer.ts';

type Pace = { readonly rounds: number; readonly repeats: number };

const parts: Readonly<Record<string, (pace: Pace) => Promise<readonly Figure[]>>> = {
  latency: ({ rounds }) => withBoth({}, (both) => measureLatency(both, rounds)),
  added: ({ rounds }) => withBoth({}, (both) => measureAdded(both, Math.ceil(rounds / 2))),
  burst: ({ repeats }) => withBoth({}, (both) => measureBurst(both, { repeats, name: 'burst' })),
  followup: ({ repeats }) =>
    withBoth({ settings: { queue: { dm: { mode: 'followup' } } } }, (both) =>
      measureBurst(both, { repeats, name: 'burst, each message its own turn' }),
    ),
  start: ({ repeats }) => measureStart(repeats),
  memory: () => withParley({}, measureMemory),
  steer: ({ rounds }) => withParley({}, (parley) => measureSteer(parley, Math.ceil(rounds / 2))),
  crash: () => measureCrash(),
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
const pace: Pace = values.quick ? { rounds: 20, repeats: 1 } : { rounds: 60, repeats: 5 };
const chosen = positionals.length > 0 ? positionals : Object.keys(parts);
const figures: Figure[] = [];
for (const name of chosen) {
  const part = parts[name];
  if (!part) throw new Error(`there is no part "${name}"; there are ${Object.keys(parts).join(', ')}`);
  const found = await part(pace);
  console.log(renderText(found));
  figures.push(...found);
}
if (chosen.length > 1) console.log(`\n${renderText(figures)}`);
if (values.write) {
  const folder = join(import.meta.dirname, '../docs');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'benchmarks.md'), renderMarkdown(figures, 'npm run bench -- --write'));
}

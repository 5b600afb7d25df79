/**
 * `npm run bench [-- <part> …] [--write] [--quick]`: measures Parley beside the bare floor. `--write` puts
 * the result into docs/benchmarks.md. The figures are printed, never asserted; a lost, doubled or
 * disordered message ends the run with an error.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Figure } from './figure.ts';
import { fullPace, parts, quickPace } from './parts.ts';
import { renderMarkdown, renderText } from './report.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
const pace = values.quick ? quickPace : fullPace;
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

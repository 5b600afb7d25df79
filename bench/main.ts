/**
 * `npm run bench [-- <part> …] [--write] [--quick]`: measures Parley beside the bare floor, and its lanes
 * alone (`steps`, `lanes`, `restart`, `sustained`). `--write` puts the result into docs/benchmarks.md, that
 * of the lanes into docs/lanes.md. The figures are printed, never asserted; a lost, doubled or
 * disordered message ends the run with an error.
 */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Figure } from './figure.ts';
import { laneParts } from './lanes/parts.ts';
import { showSheet, writeSheets } from './lanes/sheet.ts';
import { fullPace, parts, quickPace } from './parts.ts';
import { renderMarkdown, renderText } from './report.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
// Every subject runs the bundle, as `npm start` does.
execFileSync(process.execPath, [join(import.meta.dirname, '../scripts/bundle.mjs'), '--bench'], {
  stdio: 'inherit',
});
const pace = values.quick ? quickPace : fullPace;
const chosen = positionals.length > 0 ? positionals : Object.keys(parts);
const figures: Figure[] = [];
for (const name of chosen) {
  const part = parts[name];
  if (part) figures.push(...(await measured(part)));
  else await measureLanes(name);
}
if (chosen.length > 1) console.log(`\n${renderText(figures)}`);
if (values.write && figures.length > 0) {
  const folder = join(import.meta.dirname, '../docs');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'benchmarks.md'), renderMarkdown(figures, 'npm run bench -- --write'));
}

async function measured(part: (typeof parts)[string]): Promise<readonly Figure[]> {
  const found = await part(pace);
  console.log(renderText(found));
  return found;
}

async function measureLanes(name: string): Promise<void> {
  const part = laneParts[name];
  const known = [...Object.keys(parts), ...Object.keys(laneParts)].join(', ');
  if (!part) throw new Error(`there is no part "${name}"; there are ${known}`);
  const sheets = await part(pace);
  for (const sheet of sheets) console.log(showSheet(sheet));
  if (values.write)
    await writeSheets(name, sheets, `npm run bench -- ${name}${values.quick ? ' --quick' : ''} --write`);
}

/**
 * `npm run bench [-- <part> …] [--write] [--quick]`: measures Parley against the floor, and its lanes
 * alone (`steps`, `lanes`, `restart`, `sustained`, `offered`). `--write` puts each part, as soon as it is measured,
 * into its section of docs/benchmarks.md, or docs/lanes.md for the lanes. The figures are printed, never asserted; a
 * lost, doubled or disordered message ends the run with an error.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lanesReport } from './lanes/parts.ts';
import { benchmarksReport, fullPace, type MeasuredReport, quickPace } from './parts.ts';
import { showSheet, writeSheets } from './sheet.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
// Every subject runs the bundle, as `npm start` does.
execFileSync(process.execPath, [join(import.meta.dirname, '../scripts/bundle.mjs'), '--bench'], {
  stdio: 'inherit',
});
const pace = values.quick ? quickPace : fullPace;
const reports = [benchmarksReport, lanesReport];
const chosen = positionals.length > 0 ? positionals : benchmarksReport.parts;
for (const name of chosen) await measurePart(name);

async function measurePart(part: string): Promise<void> {
  const report: MeasuredReport | undefined = reports.find(({ parts }) => parts.includes(part));
  const known = reports.flatMap(({ parts }) => parts).join(', ');
  if (!report) throw new Error(`there is no part "${part}"; there are ${known}`);
  const sheets = await report.measure(part, pace);
  for (const sheet of sheets) console.log(showSheet(sheet));
  const command = `npm run bench -- ${part}${values.quick ? ' --quick' : ''} --write`;
  if (values.write) await writeSheets(report, part, { sheets, command });
}

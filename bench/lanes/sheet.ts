import { readFile, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';

/** One part's result: a table, and in words what its columns mean. */
export type Sheet = {
  readonly title: string;
  readonly about: readonly string[];
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
};

const file = join(import.meta.dirname, '../../docs/lanes.md');

const opening = [
  '# Lanes, measured',
  '',
  'The real stages: store with full fsync, queue with BullMQ on Redis, lane workers, runs with recorder and loop,',
  'outbox. A model that answers at once and a network inside the process stand in for what is not Parley, so that',
  'what is left is the price of a message. Every message is its own turn (`followup`), is awaited, and must be answered',
  'once and in its order, or the measurement ends with an error. The figures themselves are not asserted.',
  '',
];

export function showSheet({ title, about, heads, rows }: Sheet): string {
  const lines = [heads, ...rows];
  const widths = heads.map((_, column) => Math.max(...lines.map((row) => (row[column] ?? '').length)));
  const table = lines.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return ['', title, ...about, ...table].join('\n');
}

/** Puts the sheets of one part into docs/lanes.md, in place of those it had there. */
export async function writeSheets(part: string, sheets: readonly Sheet[], command: string): Promise<void> {
  const known = await readFile(file, 'utf8').catch(() => '');
  const begin = `<!-- ${part} -->`;
  const end = `<!-- end of ${part} -->`;
  const section = [begin, machineLine(command), ...sheets.flatMap(sheetLines), end].join('\n');
  const [, before, after] =
    known.match(new RegExp(`^([\\s\\S]*?)${begin}[\\s\\S]*?${end}\\n?([\\s\\S]*)$`)) ?? [];
  const text =
    before === undefined
      ? `${known === '' ? `${opening.join('\n')}\n` : `${known.trimEnd()}\n\n`}${section}\n`
      : `${before}${section}\n${after ?? ''}`;
  await writeFile(file, text);
}

function sheetLines({ title, about, heads, rows }: Sheet): readonly string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rule = `|---|${'---:|'.repeat(heads.length - 1)}`;
  return ['', `## ${title}`, '', ...about, '', line(heads), rule, ...rows.map(line), ''];
}

function machineLine(command: string): string {
  const [cpu] = cpus();
  const date = new Date().toISOString().slice(0, 16).replace('T', ' ');
  const machine = `${cpus().length} × ${cpu?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GB, Node.js ${process.version}`;
  return `\`${command}\`, ${date} UTC, ${machine}, load ${loadavg()[1]?.toFixed(1)} (5 minutes).`;
}

export function round(value: number, digits = 1): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '–';
}

export function count(value: number): string {
  return Math.round(value).toLocaleString('en');
}

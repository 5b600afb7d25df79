import { readFile, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';

/** One part's result: a table, and an explanation of its columns. */
export type Sheet = {
  readonly title: string;
  readonly about: readonly string[];
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
};

/** A file in docs/ that the measurements write, with a section for each part. */
export type Report = {
  readonly name: string;
  readonly opening: readonly string[];
  /** Its parts in the order of their sections. */
  readonly parts: readonly string[];
};

export function showSheet({ title, about, heads, rows }: Sheet): string {
  const lines = [heads, ...rows];
  const widths = heads.map((_, column) => Math.max(...lines.map((row) => (row[column] ?? '').length)));
  const table = lines.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return ['', title, ...about, ...table].join('\n');
}

/** Writes the sheets of one part into its report, replacing its earlier ones; the other parts' sheets stay. */
export async function writeSheets(
  { name, opening, parts }: Report,
  part: string,
  { sheets, command }: { readonly sheets: readonly Sheet[]; readonly command: string },
): Promise<void> {
  const file = join(import.meta.dirname, '../docs', name);
  const known = await readFile(file, 'utf8').catch(() => '');
  const sections = new Map([...known.matchAll(sectionPattern)].map(([all, of]) => [of, all]));
  const lines = [machineLine(command), ...sheets.flatMap(sheetLines)];
  sections.set(part, [`<!-- ${part} -->`, ...lines, `<!-- end of ${part} -->`].join('\n'));
  const inOrder = parts.flatMap((one) => sections.get(one) ?? []);
  await writeFile(file, `${[opening.join('\n'), ...inOrder].join('\n\n')}\n`);
}

const sectionPattern = /<!-- ([\w-]+) -->\n[\s\S]*?<!-- end of \1 -->/g;

function sheetLines({ title, about, heads, rows }: Sheet): readonly string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rule = `|---|${'---:|'.repeat(heads.length - 1)}`;
  const words = about.length > 0 ? [...about, ''] : [];
  return ['', `## ${title}`, '', ...words, line(heads), rule, ...rows.map(line), ''];
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

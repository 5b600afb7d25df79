/** Writes the measurements to docs/kill-matrix.md, one section per test file. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { ChannelName } from './stage.ts';

export type MatrixRow = {
  readonly kills: readonly string[];
  readonly title: string;
  readonly channel: ChannelName;
  readonly unknown: 'lost' | 'arrived' | undefined;
  readonly answeredMs: number;
  readonly readyMs: number;
};

const file = join(import.meta.dirname, '../../docs/kill-matrix.md');

const intro = `# Kill matrix

Measured, not claimed: \`npm run kill-matrix\` writes this file. For each line, a real gateway process was
killed with \`kill -9\` together with its Redis and restarted on the same data folder. "Once" means that the
person's message appears once in the transcript, no request showed it to the model twice, its answer appears
once in the conversation, and every accepted event, part and tool call has exactly one outcome in the database.
`;

/** True in the run that writes the file: an ordinary test run changes no documents. */
export function isReported(): boolean {
  return process.env.KILL_MATRIX === 'write';
}

/** Asserts a promised time in ms, but only in the run that writes the file: other runs share the machine. */
export function promised(what: string, { tookMs, withinMs }: { tookMs: number; withinMs: number }): void {
  if (isReported() && tookMs > withinMs)
    throw new Error(`${what} after ${Math.round(tookMs)} ms instead of ${withinMs}`);
}

/** Writes the table of kill points. Failed scenarios aren't in it; they fail the run that writes it. */
export async function writeMatrix(rows: readonly MatrixRow[]): Promise<void> {
  const slowest = Math.max(...rows.map((row) => row.answeredMs));
  const ordered = [...rows].sort((a, b) => keyOf(a).localeCompare(keyOf(b)));
  await writeSection('At every kill point', [
    `${rows.length} scenarios, two at a time on ${availableParallelism()} cores. The slowest answer arrived ${inSeconds(slowest)}`,
    'after the start of the new process, that process’s own start included.',
    '',
    '| killed at | scenario | channel | result | answered after | of that, the start |',
    '| --- | --- | --- | --- | --- | --- |',
    ...ordered.map(lineOf),
  ]);
}

/** Replaces the section with this heading and leaves the others as they are. */
export async function writeSection(heading: string, lines: readonly string[]): Promise<void> {
  const known = await readFile(file, 'utf8').catch(() => intro);
  const [, ...sections] = known.split(/^## /m);
  const kept = sections.filter((section) => !section.startsWith(`${heading}\n`));
  const written = `${heading}\n\n${lines.join('\n')}\n`;
  const all = [...kept.map((section) => `${section.trimEnd()}\n`), written].sort();
  await mkdir(join(file, '..'), { recursive: true });
  await writeFile(file, [intro, ...all].join('\n## '));
}

function lineOf(row: MatrixRow): string {
  const { kills, title, channel, answeredMs, readyMs } = row;
  const cells = [
    kills.join(', then '),
    title,
    channel,
    resultOf(row),
    inSeconds(answeredMs),
    inSeconds(readyMs),
  ];
  return `| ${cells.join(' | ')} |`;
}

function keyOf({ kills, title, channel }: MatrixRow): string {
  return `${kills.join()} ${title} ${channel}`;
}

function resultOf({ unknown }: MatrixRow): string {
  if (unknown === undefined) return 'once';
  const fate = unknown === 'lost' ? 'it had not arrived' : 'it had arrived';
  return `the send is reported \`unknown\` and not repeated; ${fate}`;
}

export function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

import { cpus, loadavg, totalmem } from 'node:os';
import { type Figure, ratioOf } from './figure.ts';

const heads = ['figure', 'floor', 'Parley', 'ratio', 'target'] as const;

export function renderText(figures: readonly Figure[]): string {
  const rows = [heads as readonly string[], ...figures.map(cellsOf)];
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join('  '),
    )
    .join('\n');
}

export function renderMarkdown(figures: readonly Figure[], command: string): string {
  const [cpu] = cpus();
  const lines = [
    '# Benchmarks',
    '',
    'What Parley costs beside the bare floor: a bot of a few lines on the same SDKs, with a promise',
    'chain per chat and its history in memory, nothing durable (`bench/floors`). Both talk to the same local',
    'platforms, in turns and in the same run, so the ratios hold where the absolute figures do not. Medians.',
    'Nothing here is asserted.',
    '',
    `- Command: \`${command}\``,
    `- Date: ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
    `- Machine: ${cpus().length} × ${cpu?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}, Node.js ${process.version}`,
    `- Load of the machine while it ran: ${loadavg()[1]?.toFixed(1)} (5 minutes); above ${cpus().length} others were at work, and every hand-over between threads waits for them`,
    '',
    `| ${heads.join(' | ')} |`,
    '|---|---:|---:|---:|---|',
    ...figures.map((figure) => `| ${cellsOf(figure).join(' | ')} |`),
  ];
  return `${lines.join('\n')}\n`;
}

function cellsOf(figure: Figure): readonly string[] {
  const ratio = ratioOf(figure);
  const withUnit = (value: number | undefined) =>
    value === undefined ? '–' : `${format(value)}${figure.unit === '' ? '' : ` ${figure.unit}`}`;
  return [
    figure.name,
    withUnit(figure.floor),
    withUnit(figure.parley),
    ratio === undefined ? '–' : `${ratio.toFixed(2)} ×`,
    figure.target,
  ];
}

function format(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

/** Records of anything but messages: their stored fields, one a line, and rows that belong to them below. */
import type { RecordTrace } from '../store/reads/why/read-record.ts';
import { timeOf } from './fact-lines.ts';

/** Renders a record as lines of plain text; the times are local. */
export function renderRecord({ kind, ...named }: RecordTrace): string {
  const [row = {}] = Object.values<object>(named);
  const { id, key = id, ref = key } = row as Readonly<Record<string, unknown>>;
  return [`${kind} ${ref}`, ...fieldLines(row)].join('\n');
}

function fieldLines(row: object, indent = ''): readonly string[] {
  return Object.entries(row).flatMap(([name, value]: [string, unknown]) => {
    const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    const rows = [value ?? []].flat().filter((each) => typeof each === 'object');
    if (rows.length > 0)
      return rows.flatMap((each) => [`${indent}${words}:`, ...fieldLines(each, `${indent}  `)]);
    const text = textOf(name, value);
    return text === '' ? [] : [`${indent}${words}: ${text}`];
  });
}

function textOf(name: string, value: unknown): string {
  if (typeof value === 'number' && /(?:At|Until)$/.test(name)) return timeOf(value);
  if (typeof value === 'number' && name === 'cost') return `$${(value / 1e6).toFixed(6)}`;
  return Array.isArray(value) ? value.join(', ') : String(value ?? '');
}

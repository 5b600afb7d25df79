/** Makes the text of a delivery: its body, or those parts of it that the template names. Pure. */
import { cleanText } from '#channel-kit/clean-text.ts';
import { readBody } from './verify-delivery.ts';

/** Longest text of a delivery, UTF-16 units; a template chooses from longer bodies. */
const maxLength = 16_000;

/** Returns the text; `{{a.b.0.c}}` stands for a member, and `*` for each of several, joined by commas. */
export function renderDelivery(body: Buffer, template: string | undefined): string {
  const text = cleanText(template === undefined ? body.toString('utf8') : fill(template, readBody(body)));
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).toWellFormed()}\n[… shortened]`;
}

function fill(template: string, value: unknown): string {
  return template.replace(/\{\{\s*([^{}\s]+)\s*\}\}/g, (_all, path: string) =>
    textAt(value, path.split('.')),
  );
}

function textAt(value: unknown, path: readonly string[]): string {
  return valuesAt(value, path).map(written).join(', ');
}

function written(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value);
  } catch {
    // It is nested more deeply than any report.
    return '[…]';
  }
}

function valuesAt(value: unknown, [name, ...rest]: readonly string[]): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (name === undefined) return [value];
  if (typeof value !== 'object') return [];
  if (name === '*') return Object.values(value).flatMap((one) => valuesAt(one, rest));
  return Object.hasOwn(value, name) ? valuesAt((value as Record<string, unknown>)[name], rest) : [];
}

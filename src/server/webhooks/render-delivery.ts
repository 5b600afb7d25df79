/** Makes the text of a delivery: its body, or those parts of it that the template names. Pure. */
import { readBody } from './verify-delivery.ts';

/** Longest text of a delivery, UTF-16 units; a template chooses from longer bodies. */
const maxLength = 16_000;

/** Returns the text; `{{a.b.0.c}}` stands for a member, and `*` for each of several, joined by commas. */
export function renderDelivery(body: Buffer, template: string | undefined): string {
  const value = readBody(body);
  const text =
    template === undefined
      ? value === undefined
        ? body.toString('utf8')
        : JSON.stringify(value, undefined, 1)
      : template.replace(/\{\{\s*([^{}\s]+)\s*\}\}/g, (_all, path: string) => textAt(value, path.split('.')));
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).toWellFormed()}\n[… shortened]`;
}

function textAt(value: unknown, path: readonly string[]): string {
  const found = valuesAt(value, path).map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
  return found.join(', ');
}

function valuesAt(value: unknown, [name, ...rest]: readonly string[]): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (name === undefined) return [value];
  if (typeof value !== 'object') return [];
  if (name === '*') return Object.values(value).flatMap((one) => valuesAt(one, rest));
  return Object.hasOwn(value, name) ? valuesAt((value as Record<string, unknown>)[name], rest) : [];
}

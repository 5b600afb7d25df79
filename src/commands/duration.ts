const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** Reads `500ms`, `2s`, `1.5s` or `1m` as milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m)$/i.exec(text) ?? [];
  const scale = unitMs[unit.toLowerCase()];
  return amount === undefined || scale === undefined ? undefined : Math.round(Number(amount) * scale);
}

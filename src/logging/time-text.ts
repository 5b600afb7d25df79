const latest = 8.64e15;

/**
 * Formats a time in UTC for people and programs: `2026-11-22T11:28:00.000Z`. Accepts any stored value and never throws:
 * an invalid date is reported with its value, so that it can be searched for.
 */
export function timeText(at: unknown): string {
  if (typeof at === 'number' && Math.abs(at) <= latest) return new Date(at).toISOString();
  return `no date (${String(at).slice(0, 24)})`;
}

/** Formats a time for use in a sentence: `2026-11-22 11:28 UTC`. Never throws either. */
export function minuteText(at: unknown): string {
  return timeText(at).replace(/^(\S+)T(\d\d:\d\d):.*Z$/, '$1 $2 UTC');
}

/** Formats a time for people at this machine, in its time zone: `2026-11-22 12:28`. Never throws either. */
export function localTime(at: unknown): string {
  if (typeof at !== 'number' || Math.abs(at) > latest) return timeText(at);
  const time = new Date(at);
  const two = (part: number) => String(part).padStart(2, '0');
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-');
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}`;
}

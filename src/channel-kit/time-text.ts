const latest = 8.64e15;

/**
 * Formats a time in UTC for programs: `2026-11-22T11:28:00.000Z`. Accepts any stored value and never throws: an invalid
 * date is reported with its value, so that it can be searched for.
 */
export function timeText(at: unknown): string {
  return isTime(at) ? new Date(at).toISOString() : `no date (${String(at).slice(0, 24)})`;
}

/** Formats a time for people, by default in this machine's time zone: `2026-11-22 12:28`. Never throws either. */
export function localTime(at: unknown, timeZone?: string): string {
  return localSecond(at, timeZone).replace(/^(\S+ \d\d:\d\d):\d\d$/, '$1');
}

/** Formats a time for people who follow events: `2026-11-22 12:28:03`. Never throws either. */
export function localSecond(at: unknown, timeZone?: string): string {
  if (!isTime(at)) return timeText(at);
  if (timeZone !== undefined) {
    // The Swedish locale writes dates and times in ISO format.
    return new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' }).format(at);
  }
  const time = new Date(at);
  const two = (part: number) => String(part).padStart(2, '0');
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-');
  return `${day} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`;
}

function isTime(at: unknown): at is number {
  return typeof at === 'number' && Math.abs(at) <= latest;
}

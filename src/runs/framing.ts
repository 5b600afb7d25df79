import type { Clock } from '#contracts/clock.ts';
import type { TextFraming } from '../store/lanes/take-rows.ts';
import { newDelimiter, untrustedBegin, untrustedEnd } from '../texts/wrap-untrusted.ts';

/**
 * Creates the framing of the messages that a run takes. The delimiter around other people's words is new each time, so
 * nobody can forge it. Throws for a time zone that doesn't exist.
 */
export function createFraming({ clock, timeZone }: { clock: Clock; timeZone: string }): () => TextFraming {
  const sayTime = createTimeText(timeZone);
  return () => {
    const boundary = newDelimiter();
    return {
      now: sayTime(clock.now()),
      contextIntro: untrustedBegin('what was said and done here before, for context only', boundary),
      overflowIntro: untrustedBegin('older messages, shortened because too many were waiting', boundary),
      contextOutro: untrustedEnd(boundary),
    };
  };
}

/** For example `It is Friday, 2026-01-02 10:30 (Europe/Berlin).` */
function createTimeText(timeZone: string): (now: number) => string {
  const day = new Intl.DateTimeFormat('en', { timeZone, weekday: 'long' });
  // The Swedish locale writes dates and times in ISO format.
  const stamp = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  let said = { minute: -1, text: '' };
  return (now) => {
    const minute = Math.floor(now / 60_000);
    if (minute !== said.minute)
      said = { minute, text: `It is ${day.format(now)}, ${stamp.format(now)} (${timeZone}).` };
    return said.text;
  };
}

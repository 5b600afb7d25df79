import type { Log } from '#contracts/log.ts';

/** Lines that a plugin may log per minute, and the longest, in UTF-16 units. */
const maxLines = 120;
const maxLineLength = 8_000;
const windowMs = 60_000;

/** Returns a log that drops what exceeds the limit of lines; `onFlood` is called once a minute in which it has. */
export function limitLog(log: Log, now: () => number, onFlood: () => void): Log {
  let since = Number.NEGATIVE_INFINITY;
  let lines = 0;
  const wrap = (inner: Log): Log => {
    const pass = (level: 'debug' | 'info' | 'warn' | 'error') => (fields: object, event: string) => {
      const at = now();
      if (at - since >= windowMs) {
        since = at;
        lines = 0;
      }
      lines += 1;
      if (lines > maxLines) {
        if (lines === maxLines + 1) onFlood();
        return;
      }
      inner[level](...shorten(fields, event));
    };
    return {
      ...{ debug: pass('debug'), info: pass('info'), warn: pass('warn'), error: pass('error') },
      child: (fields) => wrap(inner.child(shorten(fields, '')[0])),
    };
  };
  return wrap(log);
}

function shorten(fields: object, event: string): [fields: object, event: string] {
  const name = String(event).slice(0, 200);
  try {
    const text = JSON.stringify(fields) ?? '';
    return [text.length > maxLineLength ? { cut: text.slice(0, maxLineLength) } : fields, name];
  } catch {
    return [{ cut: 'fields that are no JSON' }, name];
  }
}

/**
 * An event that couldn't be read is stored as it came, which `why` doesn't show. If its channel knows the cause, a line
 * with it comes first; an event itself is JSON, so it never begins like that line.
 */
const causeLine = /^# ([^\n]{1,300})\n/;

/** Returns the text to store. `cause`: why it couldn't be read, without any of its content. */
export function withCause(raw: string, cause: string | undefined): string {
  const line = cause?.replace(/\s+/g, ' ').trim().slice(0, 300).toWellFormed();
  return line ? `# ${line}\n${raw}` : raw;
}

/** Returns the cause that was stored with the event. */
export function causeIn(stored: string | undefined): string | undefined {
  return causeLine.exec(stored ?? '')?.[1];
}

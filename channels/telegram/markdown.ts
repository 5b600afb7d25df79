/** Formatting as the model reads it: Markdown around words. The words themselves stay as they were written. */

/** Longer addresses are left out: nothing real has one, and each may be repeated thousands of times. */
const maxUrlLength = 2048;

/** Puts marks around the words, but not around white space at their ends, where Markdown doesn't see them. */
export function wrapWords(words: string, before: string, after = before): string {
  const core = words.trim();
  if (core === '') return words;
  const start = words.length - words.trimStart().length;
  const end = start + core.length;
  return `${words.slice(0, start)}${before}${core}${after}${words.slice(end)}`;
}

/** Keeps the address behind words, unless the words are the address. */
export function linkWords(label: string, url: string | undefined): string {
  if (url === undefined || url === '' || url.length > maxUrlLength || isSameAddress(label, url)) return label;
  if (label.trim() === '') return `${label}<${safeUrl(url)}>`;
  return wrapWords(label.replaceAll(/[[\]\\]/g, '\\$&'), '[', `](${safeUrl(url)})`);
}

function isSameAddress(label: string, url: string): boolean {
  const bare = (text: string) =>
    text
      .trim()
      .replace(/^(?:https?:\/\/|mailto:|tel:)/i, '')
      .replace(/\/$/, '');
  return bare(label) === bare(url);
}

/** Encodes characters that would end the destination of a link. */
function safeUrl(url: string): string {
  return url.replaceAll(/[\s()<>\\]/g, (found) => `%${found.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/** Wraps code in backticks, more than it contains in a row. */
export function codeSpan(code: string): string {
  if (code.trim() === '') return code;
  const ticks = '`'.repeat(longestRun(code) + 1);
  const gap = /^`|`$/.test(code) ? ' ' : '';
  return `${ticks}${gap}${code}${gap}${ticks}`;
}

/** A block of code between fences, on lines of its own. */
export function codeBlock(code: string, language = ''): string {
  const fence = '`'.repeat(Math.max(3, longestRun(code) + 1));
  return `${fence}${/^[\w+#.-]{1,32}$/.test(language) ? language : ''}\n${code.replace(/\n$/, '')}\n${fence}`;
}

function longestRun(code: string): number {
  return [...code.matchAll(/`+/g)].reduce((longest, [run]) => Math.max(longest, run.length), 0);
}

export function quoteBlock(words: string): string {
  return `> ${words.replaceAll('\n', '\n> ')}`;
}

/** Adds the exact time behind words such as “tomorrow at ten”. */
export function withTime(words: string, unixTime: number | undefined): string {
  const time = unixTime === undefined ? '' : formatTime(unixTime);
  return time === '' || words.includes(time) ? words : `${words} (${time})`;
}

/** Returns, for example, `2026-11-27 14:05 UTC`; empty for an impossible time. */
export function formatTime(seconds: number): string {
  const time = new Date(seconds * 1000);
  return Number.isNaN(time.getTime()) ? '' : `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Adds whose name the words stand for, if they say something else. */
export function withName(words: string, name: string): string {
  const isNamed =
    name === '' || words.trim() === '' || name.toLowerCase().includes(words.trim().toLowerCase());
  return isNamed ? words : `${words} (${name})`;
}

import { stripText } from '../logging/redaction.ts';

const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\bHeadlessChrome\/|\bChrome\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const systems: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];
/** Characters read of the user agent, and shown of an unknown one. */
const maxRead = 512;
const maxShown = 60;

/** Returns a browser's approximate name, such as "Firefox on Linux". Safe to show, whatever was sent. */
export function describeBrowser(userAgent: string | undefined): string {
  const text = (userAgent ?? '').slice(0, maxRead);
  const browser = nameIn(browsers, text);
  const system = nameIn(systems, text);
  if (browser !== undefined) return system === undefined ? browser : `${browser} on ${system}`;
  const shown = stripText(text).replace(/\s+/g, ' ').trim().slice(0, maxShown).toWellFormed();
  return shown === '' ? 'Unknown browser' : shown;
}

function nameIn(names: readonly (readonly [RegExp, string])[], text: string): string | undefined {
  return names.find(([pattern]) => pattern.test(text))?.[1];
}

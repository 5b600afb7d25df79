import { onTestFinished } from 'vitest';

/** Tracks the longest text that JSON.parse is given until the end of the test. */
export function watchParsing(): { bytes: number } {
  const most = { bytes: 0 };
  const parse = JSON.parse;
  onTestFinished(() => {
    JSON.parse = parse;
  });
  JSON.parse = (text: string, reviver?: Parameters<typeof parse>[1]) => {
    most.bytes = Math.max(most.bytes, text.length);
    return parse(text, reviver) as unknown;
  };
  return most;
}

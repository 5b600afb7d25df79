import { onTestFinished } from 'vitest';
import { JsonMarks } from '#channel-kit/json-marks.ts';

/** Tracks JSON.parse until the end of the test: the number of calls, the longest text, and the most values in one. */
export function watchParsing(): { bytes: number; marks: number; times: number } {
  const most = { bytes: 0, marks: 0, times: 0 };
  const parse = JSON.parse;
  onTestFinished(() => {
    JSON.parse = parse;
  });
  JSON.parse = (text: string, reviver?: Parameters<typeof parse>[1]) => {
    most.times += 1;
    const marks = new JsonMarks();
    let count = 0;
    for (let at = 0; at < text.length; at += 1) if (marks.isMark(text.charCodeAt(at))) count += 1;
    most.bytes = Math.max(most.bytes, text.length);
    most.marks = Math.max(most.marks, count);
    return parse(text, reviver) as unknown;
  };
  return most;
}

/**
 * Keeps pasted multi-line text in one message. Terminals mark pasted text (bracketed paste); its line breaks are
 * replaced by a sign while typing, so that they don't send, and become line breaks again when the line is sent.
 */
import { Transform } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

export const pasteOn = '\u001b[?2004h';
export const pasteOff = '\u001b[?2004l';
const begin = '\u001b[200~';
const end = '\u001b[201~';
const sign = '⏎';
/** Characters that readline takes for Enter. */
const lineBreak = /\r\n?|[\n\u2028\u2029]/g;

type Terminal = NodeJS.ReadableStream & { setRawMode?(isRaw: boolean): unknown };

/** Returns the terminal's input with pasted line breaks as signs. */
export function withPastedLines(
  input: Terminal,
): NodeJS.ReadableStream & { setRawMode(isRaw: boolean): void } {
  const filter = createFilter();
  const stream = new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, filter(chunk)),
  });
  input.pipe(stream);
  return Object.assign(stream, {
    isTTY: true,
    setRawMode: (isRaw: boolean) => void input.setRawMode?.(isRaw),
  });
}

/** Returns the typed line with its pasted line breaks restored. */
export function pastedText(line: string): string {
  return line.replaceAll(sign, '\n');
}

/** Creates a function over chunks, which may be cut anywhere: a partial mark is held back until the next chunk. */
function createFilter(): (chunk: Buffer) => string {
  const decoder = new StringDecoder('utf8');
  let isPasting = false;
  let held = '';
  return (chunk) => {
    let rest = held + decoder.write(chunk);
    let out = '';
    for (;;) {
      const mark = isPasting ? end : begin;
      const at = rest.indexOf(mark);
      const text = at === -1 ? rest.slice(0, rest.length - cutMark(rest, mark)) : rest.slice(0, at);
      out += isPasting ? text.replace(lineBreak, sign) : text;
      if (at === -1) {
        held = rest.slice(text.length);
        return out;
      }
      isPasting = !isPasting;
      rest = rest.slice(at + mark.length);
    }
  };
}

/** Returns how many of the mark's first characters the text ends with. A lone Escape is a key. */
function cutMark(text: string, mark: string): number {
  for (let length = mark.length - 1; length > 1; length -= 1)
    if (text.endsWith(mark.slice(0, length))) return length;
  return 0;
}

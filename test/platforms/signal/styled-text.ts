import type { StyleRange, TextStyle } from './types.ts';

export type StyledText = {
  readonly text: string;
  readonly styles: readonly StyleRange[];
  /** Markers that were opened and never closed: swallowed, without styling anything. */
  readonly lost: readonly string[];
};

type Marker = { readonly sign: string; readonly styles: readonly TextStyle[] };
type Open = Marker & { readonly at: number };

const markers: readonly Marker[] = [
  { sign: '**', styles: ['BOLD'] },
  { sign: '*', styles: ['ITALIC'] },
  { sign: '||', styles: ['SPOILER'] },
  { sign: '~', styles: ['STRIKETHROUGH'] },
  { sign: '`', styles: ['MONOSPACE'] },
];
const boldItalic: Marker = { sign: '***', styles: ['BOLD', 'ITALIC'] };

/**
 * Reads `text_mode: styled` as signal-cli-rest-api does, including its oddities: a marker only closes the marker opened
 * last, adjacent characters don't matter, code isn't literal, and a backslash makes the complete marker after it
 * literal (`\**` is `**`). `head` also supports `***` (as a marker of its own: observed for a complete `***text***`,
 * assumed for the rest).
 */
export function readStyledText(message: string, release: '0.100' | 'head'): StyledText {
  const known = release === 'head' ? [boldItalic, ...markers] : markers;
  const open: Open[] = [];
  const styles: StyleRange[] = [];
  let text = '';
  let isEscaped = false;
  for (let index = 0; index < message.length; ) {
    const marker = known.find(({ sign }) => message.startsWith(sign, index));
    if (marker !== undefined) {
      index += marker.sign.length;
      if (isEscaped) text += marker.sign;
      else meet(open, styles, { ...marker, at: text.length });
      isEscaped = false;
      continue;
    }
    const sign = message[index] ?? '';
    isEscaped = sign === '\\' && /^[*`|~]/.test(message.slice(index + 1));
    if (!isEscaped) text += sign;
    index += 1;
  }
  return { text, styles, lost: open.map(({ sign }) => sign) };
}

function meet(open: Open[], styles: StyleRange[], marker: Open): void {
  const last = open.at(-1);
  if (last?.sign !== marker.sign) {
    open.push(marker);
    return;
  }
  open.pop();
  for (const style of marker.styles) styles.push({ style, start: last.at, length: marker.at - last.at });
}

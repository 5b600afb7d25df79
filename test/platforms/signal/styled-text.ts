import type { StyleRange, TextStyle } from './types.ts';

export type StyledText = {
  readonly text: string;
  readonly styles: readonly StyleRange[];
  /** Markers that opened and never closed: swallowed, with no style to show for them. */
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
 * Reads `text_mode: styled` as signal-cli-rest-api does, its oddities included: a marker closes only
 * the marker opened last, there is no rule about what stands beside it, code is not literal, and a
 * backslash makes the whole marker behind it literal (`\**` is `**`). `head` knows `***` as well (as a
 * marker of its own: seen for a whole `***text***`, assumed for the rest).
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

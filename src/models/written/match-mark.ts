/** Longest part of a mark that isn't complete yet, and longest Harmony header, UTF-16 units. */
export const maxHeld = 320;

/** Returns how much of a text can't become a part of a closing mark. */
export function certainLength(text: string): number {
  const tail = Math.max(
    text.lastIndexOf('<'),
    text.lastIndexOf('['),
    text.lastIndexOf('◁'),
    text.lastIndexOf('assistant'),
  );
  const partOfWord = /a(?:s(?:s(?:i(?:s(?:t(?:a(?:n)?)?)?)?)?)?)?$/.exec(text)?.index ?? text.length;
  return tail === -1 || text.length - tail > maxHeld ? partOfWord : Math.min(tail, partOfWord);
}

/** Returns the pattern of a mark's end; `$1` in it is the name that the mark began with. */
export function closing(pattern: string, name: string | undefined): RegExp {
  return new RegExp(pattern.replaceAll('$1', (name ?? '').replace(/[^\w:-]/g, '')), 'i');
}

/** Matches a sticky pattern at the beginning of a text. */
export function matchStart(pattern: RegExp, text: string): RegExpExecArray | undefined {
  pattern.lastIndex = 0;
  return pattern.exec(text) ?? undefined;
}

const longest = 60;

/** The beginning of a text on one line, at most 60 characters. */
export function excerptOf(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length > longest ? `${flat.slice(0, longest - 1).toWellFormed()}…` : flat;
}

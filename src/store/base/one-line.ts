/** The beginning of a text, on one line. */
export function oneLine(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length > 160 ? `${flat.slice(0, 159).toWellFormed()}…` : flat;
}

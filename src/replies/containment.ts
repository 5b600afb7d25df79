/**
 * Says whether a text contains another, in time linear in both for any input (Knuth, Morris, Pratt). The
 * engine's own search rereads the wanted text wherever its beginning occurs.
 */
export function contains(text: string, wanted: string): boolean {
  if (wanted === '') return true;
  const borders = bordersOf(wanted);
  let matched = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    while (matched > 0 && unit !== wanted.charCodeAt(matched)) matched = borders[matched - 1] ?? 0;
    if (unit === wanted.charCodeAt(matched)) matched += 1;
    if (matched === wanted.length) return true;
  }
  return false;
}

/** Returns for each prefix of the text how much of its own beginning is repeated at its end. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  let border = 0;
  for (let index = 1; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    while (border > 0 && unit !== text.charCodeAt(border)) border = borders[border - 1] ?? 0;
    if (unit === text.charCodeAt(border)) border += 1;
    borders[index] = border;
  }
  return borders;
}

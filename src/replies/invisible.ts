/** True if a text has only white space, controls, direction marks, joiners, fillers and broken characters. */
export function isInvisible(text: string): boolean {
  return !/[^\s\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufffd]/u.test(text);
}

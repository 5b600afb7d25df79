/** Nothing that a person would see: white space, controls, direction marks, joiners and fillers, broken characters. */
export function isInvisible(text: string): boolean {
  return !/[^\s\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufffd]/u.test(text);
}

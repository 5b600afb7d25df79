/**
 * Returns a person's label as shown to others: first the permanent reference, then the chosen name, which proves
 * nothing. `name` must already be cleaned; here it only loses characters that could end the quotation, so that no name
 * can pretend to be another reference.
 */
export function personLabel({ ref, name }: { readonly ref: string; readonly name: string }): string {
  const bare = name.replace(/[“”„‟«»"()]/g, '').trim();
  return bare === '' ? ref : `${ref} “${bare}”`;
}

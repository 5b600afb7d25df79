/**
 * A person as shown to others: first the permanent reference, then the chosen name, which proves nothing.
 * `name` is cleaned already; here it only loses what could end the quotation, so that no name can pretend to be
 * another reference.
 */
export function personLabel({ ref, name }: { readonly ref: string; readonly name: string }): string {
  const bare = name.replace(/[“”„‟«»"()]/g, '').trim();
  return bare === '' ? ref : `${ref} “${bare}”`;
}

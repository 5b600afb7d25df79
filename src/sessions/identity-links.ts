import { ParleyError } from '#contracts/errors.ts';

/** Maps a person's platform reference (`platformRef`) to the identity that their accounts share. */
export type IdentityLinks = ReadonlyMap<string, string>;

/**
 * Reads the configured form `{ alice: ['telegram:1', 'web:owner'] }`. Throws ParleyError `config_invalid` if an account
 * is claimed by two identities, which would turn two people into one.
 */
export function identityLinksFrom(configured: Readonly<Record<string, readonly string[]>>): IdentityLinks {
  const links = new Map<string, string>();
  for (const [identity, refs] of Object.entries(configured)) {
    for (const ref of refs) {
      const other = links.get(ref);
      if (other !== undefined && other !== identity) {
        throw new ParleyError(
          'config_invalid',
          `identityLinks: ${ref} is listed under "${other}" and "${identity}"; keep one of them.`,
        );
      }
      links.set(ref, identity);
    }
  }
  return links;
}

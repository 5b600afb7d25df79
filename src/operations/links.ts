/** Accounts that count as one person: linked by the configuration, or by their owners in chat. */
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { isRef } from '../commands/pair.ts';
import { stripText } from '../logging/redaction.ts';
import type { IdentityLinks } from '../sessions/identities.ts';
import { joinIdentities } from '../sessions/identities.ts';
import { newRowId } from '../store/base/keys.ts';
import { readChatLinks, removeLink } from '../store/links/change-links.ts';
import { type ChangeDeps, operation, Refusal } from './operation.ts';

export type LinksDeps = ChangeDeps & { readonly policy: { readonly identityLinks: IdentityLinks } };

/** How many accounts are read from the store. */
const listed = 10_000;

export const listLinks = operation({
  name: 'links',
  method: 'GET',
  right: 'operator',
  summary: 'Lists everyone who has several accounts, and who linked each',
  answer: z.object({
    people: z
      .array(
        z.object({
          identity: z.string(),
          accounts: z
            .array(z.object({ ref: z.string(), source: z.enum(['configuration', 'chat']) }))
            .readonly(),
        }),
      )
      .readonly(),
  }),
  run: async (deps: LinksDeps) => ({ people: await readPeople(deps) }),
});

export const removeAccount = operation({
  name: 'links/remove',
  method: 'POST',
  right: 'operator',
  summary: 'Unlinks an account that was linked in chat, and notifies it',
  input: z.strictObject({ ref: z.string().min(1).max(300).describe('`channel:id`') }),
  answer: z.object({ ref: z.string() }),
  refusals: ['invalid_input', 'not_found', 'not_possible'],
  run: async (deps: LinksDeps, { ref }) => {
    const see = `See: ${parleyCommand} link list`;
    if (!isRef(ref)) return new Refusal('invalid_input', `“${ref}” isn't in the form channel:id. ${see}`);
    if (deps.policy.identityLinks.has(ref))
      return new Refusal(
        'not_possible',
        `${ref} is linked by the configuration: change identityLinks there, then run: ${parleyCommand} reload`,
      );
    const accounts = (await readPeople(deps)).flatMap((person) => person.accounts);
    const unlinked = new Refusal('not_found', `${stripText(ref)} isn't linked. ${see}`);
    if (!accounts.some((account) => account.ref === ref)) return unlinked;
    const removed = await deps.store.write(removeLink, { peer: ref, noticeKey: `unlink:${newRowId()}` });
    deps.start(removed.effects);
    return removed.isRemoved ? { ref } : unlinked;
  },
});

/** Groups accounts by identity. An account that has an identity to itself, because the others left, isn't linked. */
async function readPeople({ store, policy: { identityLinks: configured } }: LinksDeps) {
  const accounts = await store.read(readChatLinks, { limit: listed });
  const identities = joinIdentities(configured, { accounts, lanes: [] });
  const names = new Set([...configured.values(), ...accounts.map(({ identity }) => identity)]);
  return [...names]
    .map((identity) => ({ identity, accounts: identities.accountsOf(identity) }))
    .filter((person) => person.accounts.length > 1);
}

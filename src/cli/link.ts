/** Accounts that count as one person, for the operator: linked by the configuration, or by their owners in chat. */
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { describeAccounts } from '../commands/link.ts';
import { isRef } from '../commands/pair.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import {
  type IdentityLinks,
  identityLinksFrom,
  joinIdentities,
  type LinkedAccount,
} from '../sessions/identities.ts';
import type { Store } from '../store/base/command.ts';
import { newRowId } from '../store/base/keys.ts';
import { readChatLinks, removeLink } from '../store/links/change-links.ts';
import { textsFor } from '../texts/chat-texts.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';
import { withStore } from './with-store.ts';

/** How many accounts are read from the store. */
const listed = 10_000;

type LinkedPerson = { readonly identity: string; readonly accounts: readonly LinkedAccount[] };

/** Lists everyone who has several accounts, and who linked each. */
export async function listLinks(): Promise<CommandOutput> {
  const config = configForReading();
  const configured = identityLinksFrom(config.identityLinks);
  const people = await withStore((store) => readPeople(store, configured), config);
  const texts = textsFor(config.language, config.texts);
  const lines = people.map((person) => describeAccounts(person, texts));
  return { result: people, lines: lines.length === 0 ? ['No accounts are linked.'] : lines };
}

/** Removes an account that was linked in chat. A running gateway sends it the notice within a second. */
export async function separateAccount(ref: string): Promise<CommandOutput> {
  const list = `See: ${parleyCommand} link list`;
  if (!isRef(ref)) throw new ParleyError('invalid_input', `“${ref}” isn't in the form channel:id. ${list}`);
  const config = loadConfig();
  const configured = identityLinksFrom(config.identityLinks);
  if (configured.has(ref))
    throw new ParleyError(
      'invalid_input',
      `${ref} is linked by the configuration: change identityLinks there, then run: ${parleyCommand} reload`,
    );
  const isRemoved = await withStore(async (store) => {
    const people = await readPeople(store, configured);
    if (!people.some(({ accounts }) => accounts.some((account) => account.ref === ref))) return false;
    const removed = await store.write(removeLink, { peer: ref, noticeKey: `unlink:${newRowId()}` });
    return removed.isRemoved;
  }, config);
  if (!isRemoved) throw new ParleyError('invalid_input', `${stripText(ref)} isn't linked. ${list}`);
  return { result: { ref }, lines: [`${ref} is no longer linked.`] };
}

/** Groups accounts by identity. An account that has an identity to itself, because the others left, isn't linked. */
async function readPeople(
  store: Pick<Store, 'read'>,
  configured: IdentityLinks,
): Promise<readonly LinkedPerson[]> {
  const accounts = await store.read(readChatLinks, { limit: listed });
  const identities = joinIdentities(configured, { accounts, lanes: [] });
  const names = new Set([...configured.values(), ...accounts.map(({ identity }) => identity)]);
  return [...names]
    .map((identity) => ({ identity, accounts: identities.accountsOf(identity) }))
    .filter((person) => person.accounts.length > 1);
}

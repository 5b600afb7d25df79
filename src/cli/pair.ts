import { describeAccounts } from '../commands/link.ts';
import { describeAccess } from '../commands/pair.ts';
import { hasOwner } from '../config/load-config.ts';
import * as links from '../operations/links.ts';
import * as pair from '../operations/pair.ts';
import { personLabel } from '../store/access/sender-roles.ts';
import { textsFor } from '../texts/chat-texts.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';

/** Lists pending requests and approvals. */
export async function listAccess(): Promise<CommandOutput> {
  const config = configForReading();
  const list = await callOperation(pair.listAccess, {}, config);
  const texts = textsFor(config.language, config.texts);
  const hasNoOwner = !hasOwner(config) && !list.people.some(({ role }) => role === 'owner');
  const hint = [
    'There’s no owner yet: the first person you approve becomes the owner and may do everything.',
  ];
  const lines = describeAccess(list, { now: Date.now() }, texts).split('\n');
  return { result: list, lines: [...lines, ...(hasNoOwner ? hint : [])] };
}

/** Approves a person. The first one approved on the machine becomes the owner, unless the configuration names one. */
export async function approvePerson(which: string): Promise<CommandOutput> {
  const approved = await callOperation(pair.approvePerson, { which });
  const asOwner = approved.role === 'owner' ? ', as the owner' : '';
  return { result: approved, lines: [`${personLabel(approved)} can write now${asOwner}.`] };
}

export async function revokePerson(ref: string): Promise<CommandOutput> {
  const result = await callOperation(pair.revokePerson, { ref });
  const still = result.isStillNamed ? ` ${pair.stillNamed}` : '';
  return { result, lines: [`${ref} can no longer write.${still}`] };
}

/** Lists everyone who has several accounts, and who linked each. */
export async function listLinks(): Promise<CommandOutput> {
  const config = configForReading();
  const { people } = await callOperation(links.listLinks, {}, config);
  const texts = textsFor(config.language, config.texts);
  const lines = people.map((person) => describeAccounts(person, texts));
  return { result: people, lines: lines.length === 0 ? ['No accounts are linked.'] : lines };
}

/** Removes an account that was linked in chat. */
export async function separateAccount(ref: string): Promise<CommandOutput> {
  const result = await callOperation(links.removeAccount, { ref });
  return { result, lines: [`${ref} is no longer linked.`] };
}

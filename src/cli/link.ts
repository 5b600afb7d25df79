import { describeAccounts } from '../commands/link.ts';
import * as links from '../operations/links.ts';
import { textsFor } from '../texts/chat-texts.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';

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

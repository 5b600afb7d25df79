/** Every chat command, in the order of /help. */
import type { NativeCommand } from '#contracts/channel-abilities.ts';
import { suggestName } from '../config/suggestion.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import { activation } from './activation.ts';
import { agent } from './agent.ts';
import { approvals } from './approvals.ts';
import { approve, deny } from './approve.ts';
import { budget } from './budget.ts';
import type { ChatCommand, Order } from './chat-command.ts';
import { compact } from './compact.ts';
import { context } from './context.ts';
import { helpOf } from './help.ts';
import { hooks } from './hooks.ts';
import { link } from './link.ts';
import { model } from './model.ts';
import { newCommand, reset } from './new.ts';
import { pair } from './pair.ts';
import { type PluginCommands, pluginOrder, pluginStep } from './plugin-command.ts';
import { queue } from './queue.ts';
import { reasoning } from './reasoning.ts';
import { start } from './start.ts';
import { status } from './status.ts';
import { stop } from './stop.ts';
import { subagents } from './subagents.ts';
import { tasks } from './tasks.ts';
import { think } from './think.ts';
import { unknown, unknownOrder } from './unknown.ts';
import { usage } from './usage.ts';
import { verbose } from './verbose.ts';
import { whoami } from './whoami.ts';

const others: readonly ChatCommand[] = [
  status,
  stop,
  newCommand,
  reset,
  compact,
  context,
  agent,
  model,
  think,
  reasoning,
  verbose,
  usage,
  budget,
  queue,
  subagents,
  tasks,
  activation,
  link,
  pair,
  approvals,
  approve,
  deny,
  hooks,
  whoami,
  start,
];

export const chatCommands: readonly ChatCommand[] = [helpOf(others), ...others];

const byName: ReadonlyMap<string, ChatCommand> = new Map(
  chatCommands.map((command) => [command.name, command]),
);

/** The commands' steps by name, for the store. */
export const commandSteps: ReadonlyMap<string, ChatCommand> = new Map([
  ...byName,
  [unknown.name, unknown],
  [pluginStep.name, pluginStep],
]);

/** Returns the list in the form that networks register. */
export function nativeCommands(
  texts: ChatTexts,
  plugins: ReturnType<PluginCommands['list']> = [],
): readonly NativeCommand[] {
  const own = chatCommands.map(({ name, usage, menu }) => ({ name, usage, description: texts[menu] }));
  const added = plugins.map(({ part: { name, usage = '', description } }) => ({ name, usage, description }));
  return [...own, ...added].map(({ usage, ...command }) => ({
    ...command,
    ...(usage !== '' && { argument: usage }),
  }));
}

/** Says whether a command of Parley has this name. */
export function isOwnCommand(name: string): boolean {
  return byName.has(name);
}

/**
 * Parses a text as a command; undefined for plain text. A command is a slash and one word of at most 32 letters, digits
 * and underscores, beginning with a letter, followed by nothing, white space, or `@` and a bot's name. A path
 * (`/etc/hosts is wrong`) is therefore plain text. An unknown name, or another bot's, gives the order of `unknown`.
 */
export function parseCommand(
  text: string,
  bot: { readonly name?: string } = {},
  plugins?: PluginCommands,
): Order | undefined {
  const [, typed = '', addressee, words = ''] =
    /^\/([a-z][a-z0-9_]{0,31})(?:@([a-z0-9_.-]{1,64}))?(?:\s([\s\S]*))?$/i.exec(text.trim()) ?? [];
  if (typed === '') return undefined;
  const name = typed.toLowerCase();
  if (addressee !== undefined && !isSameName(addressee, bot.name)) {
    const meant = byName.get(name)?.name;
    return unknownOrder({ name: `${typed}@${addressee}`, meant }, 'never');
  }
  const known = byName.get(name);
  if (known) return known.read(words.trim());
  const added = plugins && pluginOrder(plugins, name, words.trim());
  if (added) return added;
  return unknownOrder({ name: typed, meant: suggestName(name, [...byName.keys()]) }, 'called');
}

/** Returns the order behind a stop button. */
export function stopOrder(): Order {
  return stop.read('');
}

function isSameName(addressee: string, botName: string | undefined): boolean {
  return addressee.toLowerCase() === botName?.replace(/^@/, '').toLowerCase();
}

/** Words what is wrong with the words of a command line, and what was probably meant. */
import type { Command, CommanderError } from 'commander';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { suggestName } from '../config/suggestion.ts';

/** Returns a sentence for the error; undefined when the help was shown instead. */
export function describeUsageError(
  { code, message }: CommanderError,
  program: Command,
  args: readonly string[],
): string | undefined {
  const { command, path, rest } = findCommand(program, args);
  const help = `See: ${[parleyCommand, ...path, '--help'].join(' ')}`;
  switch (code) {
    case 'commander.help':
      return undefined;
    case 'commander.unknownCommand': {
      const typed = rest.find((word) => !word.startsWith('-')) ?? '';
      const meant = suggestName(
        typed,
        command.commands.map((each) => each.name()),
      );
      const hint = meant === undefined ? help : `Did you mean: ${[parleyCommand, ...path, meant].join(' ')}`;
      return `“${typed}” isn't a command. ${hint}`;
    }
    case 'commander.unknownOption': {
      const [, typed = ''] = /'(-[^']*)'/.exec(message) ?? [];
      const flags = visibleFlags(command);
      const meant = suggestName(typed, flags);
      return `“${typed}” isn't an option here. ${meant === undefined ? help : `Did you mean ${meant}?`}`;
    }
    default: {
      const text = message.replace(/^error: /, '').replace(/[.?]?$/, '.');
      return `${text.charAt(0).toUpperCase()}${text.slice(1)} ${help}`;
    }
  }
}

/** Finds the command that the words name: the deepest one, its path, and the words after it. */
function findCommand(program: Command, args: readonly string[]) {
  let command = program;
  const path: string[] = [];
  let rest = args;
  for (const [index, word] of args.entries()) {
    if (word.startsWith('-')) continue;
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) break;
    command = next;
    path.push(word);
    rest = args.slice(index + 1);
  }
  return { command, path, rest };
}

/** Returns the long options of a command and of those above it. */
function visibleFlags(command: Command): readonly string[] {
  const own = [...command.options.flatMap(({ long }) => long ?? []), '--help'];
  return command.parent === null ? own : [...own, ...visibleFlags(command.parent)];
}

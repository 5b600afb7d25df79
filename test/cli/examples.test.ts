import type { Command } from 'commander';
import { expect, it } from 'vitest';
import type { Actions } from '../../src/cli/actions.ts';
import { createProgram } from '../../src/cli/command-line.ts';

/** Creates the program with commands that only note that they ran, and with what. */
function aProgram() {
  const ran: string[] = [];
  const note = (command: Command) => void command.action(() => void ran.push(pathOf(command)));
  const actions: Actions = { act: note, show: (command) => note(command.option('--json')), code: () => 0 };
  const entry = { start: async () => 0 as const, chatSocket: '', parts: { channels: [], plugins: [] } };
  return { ran, program: createProgram(entry, actions) };
}

const pathOf = (command: Command): string =>
  command.parent?.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

function commandsBelow(command: Command): readonly Command[] {
  return command.commands.flatMap((each) => [each, ...commandsBelow(each)]);
}

/** Returns the examples that a command's help shows, without the program's name and what the shell reads. */
function examplesOf(command: Command): readonly string[] {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  const [, shown = ''] = help.split(/\nExamples?:\n/);
  return shown
    .trim()
    .split('\n')
    .map((line) => line.replace(/^ *\.\/bin\/parley\.mjs /, '').replace(/ > \S+$/, ''));
}

const wordsOf = (line: string) =>
  [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');

it('shows an example in the help of the program and of each command', () => {
  const { program } = aProgram();
  for (const command of [program, ...commandsBelow(program)])
    expect(examplesOf(command), command.name()).not.toEqual(['']);
});

it('shows only examples that the program itself accepts', async () => {
  const commands = commandsBelow(aProgram().program).map((command) => ({
    ...{ path: pathOf(command), isGroup: command.commands.length > 0 },
    examples: examplesOf(command),
  }));
  expect(commands.length).toBeGreaterThan(40);
  for (const { path, isGroup, examples } of commands)
    for (const example of examples) {
      const { program, ran } = aProgram();
      await program.parseAsync(wordsOf(example), { from: 'user' });
      expect(ran, example).toEqual([isGroup ? expect.stringContaining(path) : path]);
    }
});

it('detects an example with a wrong option, name or number of arguments', async () => {
  for (const example of ['queue list --jsn', 'queue lst', 'queue edit 17', 'why', 'status 1'])
    await expect(aProgram().program.parseAsync(wordsOf(example), { from: 'user' })).rejects.toThrow();
});

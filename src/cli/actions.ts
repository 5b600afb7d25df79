import type { Command } from 'commander';
import type { ExitCode } from './exit-code.ts';
import { type CommandOutput, printOutput } from './print.ts';

type Run<Args extends readonly unknown[], Result> = (...args: Args) => Promise<Result>;

/** Gives commands what they do; `run` gets the arguments, then the options. One command runs at most. */
export interface Actions {
  /** The command prints by itself. */
  act<Args extends readonly unknown[]>(command: Command, run: Run<Args, ExitCode>): void;
  /** The command's result is printed: for people, or as JSON for programs. */
  show<Args extends readonly unknown[]>(command: Command, run: Run<Args, CommandOutput>): void;
  /** The exit code of the command that has run. */
  code(): ExitCode;
}

/** Creates the actions of one command line. */
export function createActions(): Actions {
  let code: ExitCode = 0;
  const act: Actions['act'] = <Args extends readonly unknown[]>(
    command: Command,
    run: Run<Args, ExitCode>,
  ) => {
    command.action(async (...args) => {
      // Commander gives what the command declares.
      code = await run(...(args as unknown as Args));
    });
  };
  return {
    act,
    show: <Args extends readonly unknown[]>(command: Command, run: Run<Args, CommandOutput>) =>
      act(command.option('--json', 'as JSON'), async (...args: Args) => {
        const output = await run(...args);
        // A command above may have an option of that name too, which takes it first.
        return printOutput(output, { asJson: command.optsWithGlobals().json === true });
      }),
    code: () => code,
  };
}

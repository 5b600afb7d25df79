import type { Command } from 'commander';
import type { ExitCode } from './exit-code.ts';
import { type CommandOutput, printOutput } from './print.ts';

type Run<Args extends readonly unknown[], Result> = (...args: Args) => Promise<Result>;

/** Attaches actions to commands; `run` gets the arguments, then the options. At most one command runs. */
export interface Actions {
  /** The command does its own printing. */
  act<Args extends readonly unknown[]>(command: Command, run: Run<Args, ExitCode>): void;
  /** The command's result is printed, as text for people or as JSON for programs. */
  show<Args extends readonly unknown[]>(command: Command, run: Run<Args, CommandOutput>): void;
  /** Returns the exit code of the command that ran. */
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
      // Commander passes the arguments that the command declares.
      code = await run(...(args as unknown as Args));
    });
  };
  return {
    act,
    show: <Args extends readonly unknown[]>(command: Command, run: Run<Args, CommandOutput>) =>
      act(command.option('--json', 'as JSON'), async (...args: Args) => {
        const output = await run(...args);
        // A parent command may have an option of the same name, which captures it first.
        return printOutput(output, { asJson: command.optsWithGlobals().json === true });
      }),
    code: () => code,
  };
}

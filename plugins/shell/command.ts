import { ParleyError } from '#contracts/errors.ts';
import type { ShellConfig } from './config.ts';

/** The program that one call runs: shown to the person who approves it, and run exactly as it is. */
export type CommandDescription = {
  readonly argv: readonly string[];
  /** As the command sees it. */
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
};

/** Where a sandboxed command finds its workspace. */
export const sandboxWorkspace = '/workspace';

/** Returns where a sandboxed command finds the files of its skill. */
export const sandboxSkill = (name: string) => `/skills/${name}`;

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Describes what `command` would run in the workspace. Pure: the same input and settings give the same description. */
export function describeCommand(
  command: string,
  workspace: string,
  { unsandboxed, environment }: Pick<ShellConfig, 'unsandboxed' | 'environment'>,
  /** Further variables, those of a skill. */
  further: Readonly<Record<string, string>> = {},
): CommandDescription {
  const home = unsandboxed ? workspace : '/tmp/home';
  return {
    // Without `--`, a command that begins with a dash would be taken for bash's options.
    argv: ['/bin/bash', '-c', '--', command],
    cwd: unsandboxed ? workspace : sandboxWorkspace,
    environment: {
      PATH: path,
      HOME: home,
      LANG: 'C.UTF-8',
      TERM: 'dumb',
      NO_COLOR: '1',
      ...environment,
      ...further,
    },
  };
}

/** Creates a failure for the model to read. */
export function shellProblem(message: string, cause?: unknown): ParleyError {
  return new ParleyError('tool_failed', message, { cause });
}

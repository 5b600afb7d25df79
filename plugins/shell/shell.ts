import { mkdir } from 'node:fs/promises';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import { describeCommand } from './command.ts';
import type { ShellConfig } from './config.ts';
import { type RunningCommand, startCommand } from './run-command.ts';
import { sandboxed } from './sandbox.ts';

/** Starts a command in a workspace; it is ended after `timeoutMs`. */
export type StartShell = (
  command: string,
  place: { readonly workspace: string; readonly timeoutMs: number },
) => Promise<RunningCommand>;

export type ShellDeps = { readonly config: ShellConfig; readonly disks: DiskCalls; readonly bwrap: string };

/** Creates the one function that starts commands: in the sandbox, unless the owner has done without it. */
export function createShell({ config, disks, bwrap }: ShellDeps): StartShell {
  return async (command, { workspace, timeoutMs }) => {
    const description = describeCommand(command, workspace, config);
    if (config.unsandboxed) {
      await disks.run(workspace, () => mkdir(workspace, { recursive: true }));
      const [file = '', ...args] = description.argv;
      return startCommand({ file, args, environment: description.environment, cwd: workspace }, timeoutMs);
    }
    const launch = await sandboxed(description, { bwrap, config, workspace, disks });
    try {
      return startCommand(launch, timeoutMs);
    } finally {
      await launch.close();
    }
  };
}

import { mkdir } from 'node:fs/promises';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import { describeCommand, sandboxSkill } from './command.ts';
import type { ShellConfig } from './config.ts';
import { type RunningCommand, startCommand } from './run-command.ts';
import { sandboxed } from './sandbox.ts';
import { copySkill, type SkillCopy, type SkillUse } from './skill-copy.ts';

/** Starts a command in a workspace; it is ended after `timeoutMs`. */
export type StartShell = (
  command: string,
  place: {
    readonly workspace: string;
    readonly timeoutMs: number;
    /** The skill whose files and variables the command gets. */
    readonly skill?: SkillUse | undefined;
  },
) => Promise<RunningCommand>;

export type ShellDeps = { readonly config: ShellConfig; readonly disks: DiskCalls; readonly bwrap: string };

/** Creates the one function that starts commands: in the sandbox, unless the owner has done without it. */
export function createShell(deps: ShellDeps): StartShell {
  return async (command, { workspace, timeoutMs, skill }) => {
    const place = { workspace, timeoutMs };
    if (skill === undefined) return start(deps, command, place);
    const copy = await copySkill(skill);
    try {
      const running = await start(deps, command, { ...place, skill: { ...skill, copy } });
      void running.ended.then(copy.remove);
      return running;
    } catch (error) {
      await copy.remove();
      throw error;
    }
  };
}

type Place = {
  readonly workspace: string;
  readonly timeoutMs: number;
  readonly skill?: SkillUse & { readonly copy: SkillCopy };
};

async function start(
  { config, disks, bwrap }: ShellDeps,
  command: string,
  { workspace, timeoutMs, skill }: Place,
): Promise<RunningCommand> {
  const mount = skill && { from: skill.copy.folder, to: sandboxSkill(skill.name) };
  const further = skill && {
    ...skill.environment,
    SKILL_DIR: config.unsandboxed ? skill.copy.folder : sandboxSkill(skill.name),
  };
  const description = describeCommand(command, workspace, config, further);
  if (config.unsandboxed) {
    await disks.run(workspace, () => mkdir(workspace, { recursive: true }));
    const [file = '', ...args] = description.argv;
    return startCommand({ file, args, environment: description.environment, cwd: workspace }, timeoutMs);
  }
  const launch = await sandboxed(description, { bwrap, config, workspace, disks, ...(mount && { mount }) });
  try {
    return startCommand(launch, timeoutMs);
  } finally {
    await launch.close();
  }
}

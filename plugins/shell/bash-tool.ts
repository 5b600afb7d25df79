import { z } from 'zod';
import type { SkillReader, SkillSnapshot } from '#contracts/skill.ts';
import { defineTool, type Tool, type ToolContext, type ToolRun } from '#contracts/tool.ts';
import type { BackgroundCommands } from './background.ts';
import { describeCommand, shellProblem } from './command.ts';
import type { ShellConfig } from './config.ts';
import { describeEnd, withOutput } from './report.ts';
import type { CommandEnd, RunningCommand } from './run-command.ts';
import type { StartShell } from './shell.ts';
import type { SkillUse } from './skill-copy.ts';

/** Longest command, in UTF-16 units: the kernel takes no argument over 128 KiB. */
const maxCommandLength = 32_000;
/** Time between two reports of a running command's output, ms. */
const reportMs = 500;

export type BashParts = {
  readonly config: ShellConfig;
  readonly start: StartShell;
  readonly background: BackgroundCommands;
  readonly skills: SkillReader;
};

/** Creates the tool for one run: its commands may use the run's skills. */
export function createBashTool(
  { config, start, background, skills }: BashParts,
  { workspace, skills: snapshot }: Pick<ToolRun, 'workspace' | 'skills'>,
): Tool {
  const schema = inputSchemaOf(config);
  return defineTool<BashInput>({
    name: 'bash',
    description: descriptionOf(config),
    inputSchema: snapshot === undefined ? schema.omit({ skill: true }) : schema,
    parallelSafe: false,
    replay: 'never',
    authority: config.authority,
    approval: 'ask',
    describe: (input) =>
      describeBash(input, { workspace, config, skill: describeSkill(input, { snapshot, skills }) }),
    async execute({ command, background: isBackground, timeoutSeconds, skill: name }, ctx) {
      const skill = name === undefined ? undefined : await useSkill(name, { snapshot, skills });
      if (isBackground) {
        const id = await background.start(command, ctx.run, skill);
        return { text: `Started in the background as ${id}. bash_jobs reads its output and ends it.` };
      }
      const timeoutMs = timeoutSeconds * 1000;
      const running = await start(command, { workspace: ctx.run.workspace, timeoutMs, skill });
      const end = await follow(running, ctx);
      ctx.signal.throwIfAborted();
      if (end.kind === 'not-started') throw shellProblem(`The command wasn't started: ${end.problem}`);
      const text = withOutput(running.output.text(), describeEnd(end, timeoutMs));
      const metadata = { end: end.kind, ...(end.kind === 'exited' && { exitCode: end.code }) };
      return { text, metadata };
    },
  });
}

function inputSchemaOf({ timeoutMs, maxTimeoutMs }: ShellConfig) {
  return z.object({
    command: z
      .string()
      .min(1)
      .max(maxCommandLength)
      .refine((command) => !command.includes('\0'), 'A command may not contain U+0000.')
      .describe('Run by bash -c; it gets no input.'),
    background: z.boolean().default(false).describe('Return immediately; see bash_jobs.'),
    timeoutSeconds: z
      .number()
      .min(1)
      .max(maxTimeoutMs / 1000)
      .default(Math.min(timeoutMs, maxTimeoutMs) / 1000)
      .describe('Not for background commands.'),
    skill: z
      .string()
      .max(64)
      .optional()
      .describe('The skill whose programs the command runs: SKILL_DIR is the folder with its files.'),
  });
}

type BashInput = z.output<ReturnType<typeof inputSchemaOf>>;

/** Describes a call to the person who approves it. The command comes last, so that nothing in it looks like the rest. */
function describeBash(
  { command, background, timeoutSeconds }: BashInput,
  {
    workspace,
    config,
    skill,
  }: { readonly workspace: string; readonly config: ShellConfig; readonly skill: string | undefined },
): string {
  const { argv, cwd, environment } = describeCommand(command, workspace, config);
  const confined = config.network ? 'in the sandbox, with network' : 'in the sandbox, without network';
  const seconds = background ? config.maxBackgroundMs / 1000 : timeoutSeconds;
  return [
    `${argv.slice(0, -1).join(' ')}, ${config.unsandboxed ? 'WITHOUT A SANDBOX' : confined}`,
    `in ${cwd}${cwd === workspace ? '' : ` (${workspace})`}, ${background ? 'in the background, ' : ''}for at most ${seconds} s`,
    Object.entries(environment)
      .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
      .join(' '),
    ...(skill === undefined ? [] : [skill]),
    '',
    command,
  ].join('\n');
}

type SkillSource = { readonly snapshot: SkillSnapshot | undefined; readonly skills: SkillReader };

/** Describes the skill of a call: what it is, and which variables it gets, never their values. */
function describeSkill({ skill: name }: BashInput, { snapshot, skills }: SkillSource): string | undefined {
  if (name === undefined) return undefined;
  const digest = snapshot?.skills.find((skill) => skill.name === name)?.digest ?? 'which does not exist';
  const variables = Object.keys(skills.environmentOf(name));
  const given = variables.length === 0 ? '' : `, with ${variables.join(', ')}`;
  return `with the files of the skill ${name} (${digest})${given}`;
}

/** Reads the skill of a call, exactly as it was accepted. */
async function useSkill(name: string, { snapshot, skills }: SkillSource): Promise<SkillUse> {
  const skill = snapshot?.skills.find((each) => each.name === name);
  if (skill === undefined) throw shellProblem(`There is no skill ${name}.`);
  return { name, files: await skills.read(skill), environment: skills.environmentOf(name) };
}

/** Reports the output while the command is running; an abort ends it. */
async function follow(
  { output, ended, stop }: RunningCommand,
  { signal, update }: Pick<ToolContext, 'signal' | 'update'>,
): Promise<CommandEnd> {
  let reported = 0;
  const timer = setInterval(() => {
    if (output.size === reported) return;
    reported = output.size;
    update(output.text());
  }, reportMs);
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  try {
    return await ended;
  } finally {
    clearInterval(timer);
    signal.removeEventListener('abort', stop);
  }
}

function descriptionOf({ unsandboxed, network }: ShellConfig): string {
  const place = unsandboxed
    ? "Runs a bash command in the workspace, on the owner's machine and with Parley's own rights."
    : 'Runs a bash command in a sandbox. Its folder /workspace is the workspace; .git, hooks, skills and plugins in it ' +
      `are read-only. /tmp is empty at each call, and there is ${network ? 'a' : 'no'} network.`;
  return (
    `${place} What it leaves running ends with it; for a server or a long job use background. ` +
    'The result has its output, the middle left out if it is long, and its exit code.'
  );
}

import { z } from 'zod';

const milliseconds = (fallback: number, max: number) => z.int().min(1000).max(max).default(fallback);

/** Names that would change how the sandbox itself is loaded. */
const loaderName = /^LD_/;

/** Settings of the shell tools (`plugins.shell`). */
export const shellConfigSchema = z.strictObject({
  enabled: z.boolean().default(false),
  authority: z
    .enum(['owner', 'member', 'guest'])
    .default('owner')
    .describe('Least trusted person whose messages may cause commands to be run.'),
  network: z
    .boolean()
    .default(false)
    .describe('Commands may use the network, including the services of this machine.'),
  unsandboxed: z
    .boolean()
    .default(false)
    .describe('Run commands without a sandbox: they may then read and change whatever Parley may.'),
  environment: z
    .record(
      z
        .string()
        .regex(/^[A-Za-z_]\w*$/, 'Use letters, digits and _ in the name of an environment variable.')
        .refine((name) => !loaderName.test(name), 'Variables that begin with LD_ are not passed on.'),
      z
        .string()
        .max(10_000)
        .refine((value) => !value.includes('\0'), 'A value may not contain U+0000.'),
    )
    .default({})
    .describe(
      'Environment variables of commands, by name; nothing of Parley’s own environment is passed on.',
    ),
  timeoutMs: milliseconds(60_000, 86_400_000).describe(
    'How long a command may run unless it asks for longer, ms.',
  ),
  maxTimeoutMs: milliseconds(600_000, 86_400_000).describe('Longest time that a command may ask for, ms.'),
  maxBackground: z
    .int()
    .min(1)
    .max(100)
    .default(4)
    .describe('How many background commands may run at the same time in one workspace.'),
  maxBackgroundMs: milliseconds(3_600_000, 604_800_000).describe(
    'How long a background command may run, ms.',
  ),
  maxProcesses: z
    .int()
    .min(16)
    .max(32_768)
    .default(256)
    .describe('How many processes and threads one command may have; not enforced if Parley runs as root.'),
  memoryMb: z
    .int()
    .min(64)
    .max(1_048_576)
    .default(2048)
    .describe('Most memory of each process of a command, in megabytes.'),
  maxFileMb: z
    .int()
    .min(1)
    .max(1_048_576)
    .default(1024)
    .describe('Largest file that a command may write, in megabytes.'),
});

export type ShellConfig = z.output<typeof shellConfigSchema>;

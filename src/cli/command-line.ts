import { Command, Option } from 'commander';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import type { ConfiguredParts } from './config-check.ts';
import type { ExitCode } from './exit-code.ts';
import { addOperatorCommands, type Finish } from './operator-commands.ts';
import { describeVersion } from './version.ts';

/** Commands that only the process entry can run: it alone knows the gateway and its parts. */
export type EntryCommands = {
  /** `role`: as it was asked for on the command line. */
  start(role?: Config['role']): Promise<ExitCode>;
  /** Where the local chat listens, in the data folder. */
  readonly chatSocket: string;
  readonly parts: ConfiguredParts;
};

type AgentOptions = {
  message?: string;
  agent?: string;
  session?: string;
  key?: string;
  wait?: boolean;
  json?: boolean;
};

/** Runs one command of `parley`; resolves with the exit code. Problems are one sentence on stderr. */
export async function runCommandLine(args: readonly string[], entry: EntryCommands): Promise<ExitCode> {
  let code: ExitCode = 0;
  const finish: Finish = async (running) => {
    code = await running;
  };
  const program = new Command('parley')
    .description('A self-hosted chat gateway for AI agents.')
    .version(await describeVersion())
    .exitOverride();
  addSetupCommands(program, entry, finish);
  addGatewayCommands(program, entry, finish);
  addAgentCommands(
    program.command('agent').description('send the agent a message from the command line'),
    finish,
  );
  addAgentsCommands(program.command('agents').description('show the agents'), finish);
  addOperatorCommands(program, finish);
  addChannelCommands(program.command('channels').description('manage the networks'), entry, finish);
  addBackupCommands(program, finish);
  addServiceCommands(program, finish);
  addConfigCommands(program.command('config').description('check the configuration'), entry, finish);
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    return report(error);
  }
}

function addGatewayCommands(program: Command, entry: EntryCommands, finish: Finish): void {
  program
    .command('start')
    .description('run the gateway')
    .addOption(
      new Option('--role <role>', 'role to run (default: all)').choices(['all', 'gateway', 'worker']),
    )
    .action(({ role }: { role?: Config['role'] }) => finish(entry.start(role)));
  program
    .command('chat')
    .description('talk to the running gateway in this terminal')
    .action(async () => {
      const { runChatCommand } = await import('./chat.ts');
      await finish(runChatCommand(entry.chatSocket));
    });
  program
    .command('status')
    .description('show the state of the running gateway')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runStatus } = await import('./status.ts');
      await finish(runStatus({ asJson: json }));
    });
  program
    .command('why <id>')
    .description('show what became of a message, or what any other id stands for')
    .option('--json', 'as JSON')
    .option('--text', 'include the beginning of each text')
    .action(async (id: string, { json = false, text = false }: { json?: boolean; text?: boolean }) => {
      const { runWhy } = await import('./why.ts');
      await finish(runWhy({ id, asJson: json, withText: text }));
    });
}

function addSetupCommands(program: Command, entry: EntryCommands, finish: Finish): void {
  program
    .command('onboard')
    .description('set up Parley: model, network, owner and groups')
    .action(async () => {
      const { runOnboard } = await import('./onboard.ts');
      await finish(runOnboard(entry.parts.channels));
    });
  program
    .command('signin')
    .description('print a fresh link that signs a browser in, with a QR code for a phone')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runSignIn } = await import('./sign-in.ts');
      await finish(runSignIn({ asJson: json }));
    });
  program
    .command('doctor')
    .description('check the setup and suggest fixes')
    .option('--json', 'as JSON')
    .option('--fix', 'tighten data folder permissions')
    .action(async ({ json = false, fix = false }: { json?: boolean; fix?: boolean }) => {
      const { runDoctor } = await import('./doctor.ts');
      await finish(runDoctor({ parts: entry.parts, asJson: json, fixes: fix }));
    });
}

function addAgentCommands(agent: Command, finish: Finish): void {
  agent
    .option('--message <text>', 'what to say')
    .option('--agent <id>', 'the agent (default: your default agent)')
    .option('--session <key>', 'the session (default: your own conversation with the agent)')
    .option('--key <name>', 'your own name for this message; a repeat under the same name counts once')
    .option('--wait', 'wait for the answer and print it')
    .option('--json', 'as JSON')
    .action(async ({ json = false, wait = false, message, ...input }: AgentOptions) => {
      if (message === undefined)
        throw new ParleyError('invalid_input', `Give --message <text>, or run: ${parleyCommand} agent init`);
      const { runAgent } = await import('./agent.ts');
      await finish(runAgent({ ...input, message, waits: wait, asJson: json }));
    });
  agent
    .command('init')
    .description('create the files that shape an agent (SOUL.md, AGENTS.md …); what is there is kept')
    .option('--agent <id>', 'the agent (default: your default agent)')
    .option('--json', 'as JSON')
    .action(async (_own: unknown, command: Command) => {
      const { runAgentInit } = await import('./agent-init.ts');
      // The agent's own options of those names take them first.
      await finish(runAgentInit(command.optsWithGlobals()));
    });
}

function addChannelCommands(channels: Command, { parts }: EntryCommands, finish: Finish): void {
  channels
    .command('status')
    .description('list the channels, each on or off and why')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runChannelsStatus } = await import('./channels.ts');
      await finish(runChannelsStatus(parts.channels, { asJson: json }));
    });
  channels
    .command('login <channel>')
    .description('link an account: scan the code with the network’s app')
    .option('--json', 'each step as a line of JSON')
    .action(async (channel: string, { json = false }: { json?: boolean }) => {
      const { runChannelsLogin } = await import('./channels.ts');
      await finish(runChannelsLogin(parts.channels, { channel, asJson: json }));
    });
}

function addBackupCommands(program: Command, finish: Finish): void {
  program
    .command('backup')
    .description('back up the database, the data folder and the settings, while Parley runs or not')
    .option('--to <folder>', 'where to put it (default: backups in the data folder)')
    .option('--json', 'as JSON')
    .action(async ({ json = false, ...options }: { to?: string; json?: boolean }) => {
      const { runBackup } = await import('./backup.ts');
      await finish(runBackup({ ...options, asJson: json }));
    });
  program
    .command('restore [backup]')
    .description('restore a backup and keep what it replaces; without a name: list the backups')
    .option('--json', 'as JSON')
    .action(async (name: string | undefined, { json = false }: { json?: boolean }) => {
      const { runRestore } = await import('./backup.ts');
      await finish(runRestore({ ...(name !== undefined && { name }), asJson: json }));
    });
  program
    .command('import')
    .description('move to another database')
    .command('sqlite [from]')
    .description('copy parley.db, or another file, into the empty database at DATABASE_URL')
    .option('--json', 'as JSON')
    .action(async (from: string | undefined, { json = false }: { json?: boolean }) => {
      const { runImportSqlite } = await import('./backup.ts');
      await finish(runImportSqlite({ ...(from !== undefined && { from }), asJson: json }));
    });
}

function addAgentsCommands(agents: Command, finish: Finish): void {
  agents
    .command('list')
    .description('list the agents with their models and workspaces')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runAgentsList } = await import('./agents.ts');
      await finish(runAgentsList({ asJson: json }));
    });
}

type InstallOptions = { system?: boolean; print?: boolean; json?: boolean };

function addServiceCommands(program: Command, finish: Finish): void {
  program
    .command('reload')
    .description('read the configuration again, without a restart where possible')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runReload } = await import('./reload.ts');
      await finish(runReload({ asJson: json }));
    });
  const service = program.command('service').description('run Parley as a service (systemd)');
  service
    .command('install')
    .description('start it now, and whenever the machine starts')
    .option('--system', 'for the machine, as root (default: for you)')
    .option('--print', 'only show the unit')
    .option('--json', 'as JSON')
    .action(async ({ system = false, print = false, json = false }: InstallOptions) => {
      const { runServiceInstall } = await import('./service.ts');
      await finish(runServiceInstall({ isSystem: system, prints: print, asJson: json }));
    });
  service
    .command('status')
    .description('show whether it runs')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runServiceStatus } = await import('./service.ts');
      await finish(runServiceStatus({ asJson: json }));
    });
  service
    .command('uninstall')
    .description('stop it and remove the unit; the data stays')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runServiceUninstall } = await import('./service.ts');
      await finish(runServiceUninstall({ asJson: json }));
    });
  for (const parent of [service, program]) {
    parent
      .command('logs')
      .description('show the service log')
      .option('-f, --follow', 'follow until interrupted')
      .option('--json', 'each entry of the journal as a line of JSON')
      .action(async ({ follow = false, json = false }: { follow?: boolean; json?: boolean }) => {
        const { runLogs } = await import('./service.ts');
        await finish(runLogs({ follows: follow, asJson: json }));
      });
  }
}

function addConfigCommands(config: Command, { parts }: EntryCommands, finish: Finish): void {
  config
    .command('check')
    .description('report every problem with its fix')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runConfigCheck } = await import('./config-check.ts');
      await finish(runConfigCheck({ parts, asJson: json }));
    });
  config
    .command('schema')
    .description('print the JSON Schema of parley.config.json')
    .option('--json', 'as JSON, as it always is')
    .action(async () => {
      const { runConfigSchema } = await import('./config-schema.ts');
      await finish(runConfigSchema(parts));
    });
}

/** Commander has printed its own problems; ours are sentences that say what to do. */
function report(error: unknown): ExitCode {
  if (error instanceof Error && 'exitCode' in error) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof ParleyError && error.code !== 'internal') {
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 1;
}

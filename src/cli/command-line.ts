import { Command, CommanderError, Option } from 'commander';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { suggestName } from '../config/suggestion.ts';
import { stripText } from '../logging/redaction.ts';
import { type Actions, createActions } from './actions.ts';
import type { ConfiguredParts } from './config-check.ts';
import { addExamples } from './examples.ts';
import type { ExitCode } from './exit-code.ts';
import { addOperatorCommands } from './operator-commands.ts';
import { describeVersion } from './version.ts';

/** Commands that only the process entry point can run, since only it knows the gateway and its parts. */
export type EntryCommands = {
  /** `role`: as given on the command line. */
  start(role?: Config['role']): Promise<ExitCode>;
  /** Where the local chat listens, relative to the data folder. */
  readonly chatSocket: string;
  readonly parts: ConfiguredParts;
};

/** Runs one command of `parley`; resolves with the exit code. Problems are one sentence on stderr. */
export async function runCommandLine(args: readonly string[], entry: EntryCommands): Promise<ExitCode> {
  const actions = createActions();
  const program = createProgram(entry, actions).version(describeVersion());
  try {
    await program.parseAsync(args, { from: 'user' });
    return actions.code();
  } catch (error) {
    return report(error, program, args);
  }
}

/** Creates the program with all of its commands. */
export function createProgram(entry: EntryCommands, actions: Actions): Command {
  const program = new Command('parley')
    .description('A self-hosted chat gateway for AI agents.')
    // Its own errors, and suggestions, are worded in `report`.
    .configureOutput({ outputError: () => undefined })
    .exitOverride();
  addSetupCommands(program, entry, actions);
  addGatewayCommands(program, entry, actions);
  addAgentCommands(program, actions);
  addOperatorCommands(program, actions);
  addChannelCommands(program.command('channels').description('manage the networks'), entry, actions);
  addBackupCommands(program, actions);
  addServiceCommands(program, actions);
  addPluginCommands(program.command('plugins').description('manage plugins'), actions);
  addConfigCommands(program.command('config').description('check the configuration'), entry, actions);
  addExamples(program);
  return program;
}

/** The option of commands that do their own printing. */
type JsonOption = { readonly json?: boolean };

function addGatewayCommands(program: Command, entry: EntryCommands, { act, show }: Actions): void {
  const role = new Option('--role <role>', 'role to run (default: all)');
  act(
    program
      .command('start')
      .description('run the gateway')
      .addOption(role.choices(['all', 'gateway', 'worker'])),
    (options: { role?: Config['role'] }) => entry.start(options.role),
  );
  act(program.command('chat').description('talk to the running gateway in this terminal'), async () =>
    (await import('./chat.ts')).runChatCommand(entry.chatSocket),
  );
  act(
    program
      .command('acp')
      .description('connect an editor that speaks the Agent Client Protocol, on standard input and output')
      .option('--agent <id>', 'the agent (default: your default agent)'),
    async (options: { agent?: string }) => (await import('./acp.ts')).runAcp(options),
  );
  act(
    program
      .command('follow [id]')
      .description('show a conversation or a run as it happens (default: your own conversation)')
      .option('--json', 'each frame as a line of JSON'),
    async (id: string | undefined, { json = false }: JsonOption) =>
      (await import('./follow.ts')).runFollow({ what: id, asJson: json }),
  );
  show(program.command('status').description('show the state of the running gateway'), async () =>
    (await import('./status.ts')).showStatus(),
  );
  show(
    program
      .command('why <id>')
      .description('show what happened to a message, or what any other id refers to')
      .option('--text', 'include the beginning of each text'),
    async (id: string, { text = false }: { text?: boolean }) =>
      (await import('./why.ts')).showWhy(id, { withText: text }),
  );
}

function addSetupCommands(program: Command, { parts }: EntryCommands, { act, show }: Actions): void {
  act(program.command('onboard').description('set up Parley: model, network, owner and groups'), async () =>
    (await import('./onboard.ts')).runOnboard(parts.channels),
  );
  act(
    program
      .command('signin')
      .description('print a fresh link that signs a browser in, with a QR code for a phone')
      .option('--json', 'as JSON'),
    async ({ json = false }: JsonOption) => (await import('./sign-in.ts')).runSignIn({ asJson: json }),
  );
  show(
    program
      .command('doctor')
      .description('check the setup and suggest fixes')
      .option('--fix', 'tighten data folder permissions'),
    async ({ fix = false }: { fix?: boolean }) =>
      (await import('./doctor.ts')).examineSetup({ parts, fixes: fix }),
  );
}

function addTo(path: string, all: readonly string[]): readonly string[] {
  return [...all, path];
}

function addAgentCommands(program: Command, { act, show }: Actions): void {
  const agent = program.command('agent').description('send the agent a message from the command line');
  act(
    agent
      .option(
        '--message <text>',
        'what to say; @<file> sends the text of a file, which may be a task message',
      )
      .option('--agent <id>', 'the agent (default: your default agent)')
      .option('--session <key>', 'the session (default: your own conversation with the agent)')
      .option(
        '--key <name>',
        'your own name for this message; repeating it under the same name has no effect',
      )
      .option('--file <path>', 'a file to send along; may be repeated', addTo, [])
      .option('--timeout <seconds>', 'limit on the time of its run')
      .option('--prompt <text>', "for its run, instead of the agent's own instructions")
      .option('--wait', 'wait for the answer and print it')
      .option('--stream', 'print the answer as it is written')
      .option('--json', 'as JSON'),
    async (options: {
      message?: string;
      agent?: string;
      session?: string;
      key?: string;
      file: readonly string[];
      timeout?: string;
      prompt?: string;
      wait?: boolean;
      stream?: boolean;
      json?: boolean;
    }) => {
      const { json = false, wait = false, stream = false, message, file, timeout, ...input } = options;
      if (message === undefined)
        throw new ParleyError('invalid_input', `Give --message <text>, or run: ${parleyCommand} agent init`);
      const { runAgent } = await import('./agent.ts');
      return runAgent({
        ...{ ...input, message, files: file, waits: wait, streams: stream, asJson: json },
        ...(timeout !== undefined && { timeoutMs: secondsIn(timeout) * 1000 }),
      });
    },
  );
  show(
    agent
      .command('init')
      .description('create the files that shape an agent (SOUL.md, AGENTS.md …); existing ones are kept')
      .option('--agent <id>', 'the agent (default: your default agent)'),
    async (_own: unknown, command: Command) =>
      // The parent command's options of the same names capture them first.
      (await import('./agent-init.ts')).createAgentFiles(command.optsWithGlobals().agent),
  );
  addSessionCommands(agent, { act, show });
  addAgentsGroup(program, show);
}

function addAgentsGroup(program: Command, show: Actions['show']): void {
  const agents = program.command('agents').description('show the agents');
  show(
    agents.command('list').description('list the agents, what they are good at, and who may ask them'),
    async () => (await import('./agent.ts')).listAgents(),
  );
  show(
    agents.command('bindings').description('list the agents that were chosen in chat for groups and topics'),
    async () => (await import('./bindings.ts')).showBindings(),
  );
  show(
    agents
      .command('unbind <conversation> [thread]')
      .description('take back the agent that was chosen in chat for a group or one of its topics'),
    async (conversation: string, thread: string | undefined) =>
      (await import('./bindings.ts')).unbind(conversation, thread),
  );
}

function secondsIn(text: string): number {
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= 3600) return seconds;
  throw new ParleyError('invalid_input', '--timeout takes 1 to 3600 seconds.');
}

/** The options of `agent` come first, so a parent's value counts. */
function addSessionCommands(agent: Command, { act, show }: Pick<Actions, 'act' | 'show'>): void {
  const load = () => import('./agent-session.ts');
  const sessionOf = (command: Command): string | undefined => command.optsWithGlobals().session;
  show(
    agent
      .command('steer <text>')
      .description("give a session's run a message, which it reads before its next step")
      .option('--session <key>', 'the session'),
    async (text: string, _own: unknown, command: Command) => {
      const session = sessionOf(command);
      if (session === undefined)
        throw new ParleyError('invalid_input', `Give --session <key>; see: ${parleyCommand} sessions list`);
      return (await load()).steer(text, session);
    },
  );
  act(
    agent
      .command('summarize')
      .description("summarize a session's older part, and show the progress")
      .option('--session <key>', 'the session (default: your own conversation with the agent)')
      .option('--json', 'as JSON'),
    async (_own: unknown, command: Command) => {
      const { agent: id, json = false } = command.optsWithGlobals();
      return (await load()).summarize({ session: sessionOf(command), agent: id, asJson: json });
    },
  );
  show(
    agent
      .command('busy')
      .description('show whether a session has a run or a waiting message')
      .option('--session <key>', 'the session (default: any)'),
    async (_own: unknown, command: Command) => (await load()).isBusy(sessionOf(command)),
  );
}

function addChannelCommands(channels: Command, { parts }: EntryCommands, { act, show }: Actions): void {
  const load = () => import('./channels.ts');
  show(channels.command('status').description('list the channels, and why each is on or off'), async () =>
    (await load()).showChannels(parts.channels),
  );
  act(
    channels
      .command('login <channel>')
      .description('link an account: scan the code with the network’s app')
      .option('--json', 'each step as a line of JSON'),
    async (channel: string, { json = false }: JsonOption) =>
      (await load()).runChannelsLogin(parts.channels, { channel, asJson: json }),
  );
}

function addBackupCommands(program: Command, { show }: Actions): void {
  const load = () => import('./backup.ts');
  show(
    program
      .command('backup')
      .description('back up the database, the data folder and the settings, whether Parley is running or not')
      .option('--to <folder>', 'where to put it (default: backups in the data folder)'),
    async (options: { to?: string }) => (await load()).backUp(options),
  );
  show(
    program
      .command('restore [backup]')
      .description('restore a backup and keep what it replaces; without a name: list the backups'),
    async (name: string | undefined, { json = false }: JsonOption) =>
      (await load()).restore(name, { asJson: json }),
  );
  show(
    program
      .command('import')
      .description('move to another database')
      .command('sqlite [from]')
      .description('copy parley.db, or another file, into the empty database at DATABASE_URL'),
    async (from?: string) => (await load()).importSqliteFile(from),
  );
}

type LogsFlags = JsonOption & { follow?: boolean; lines?: string; since?: string };

function addServiceCommands(program: Command, { act, show }: Actions): void {
  show(
    program.command('reload').description('reload the configuration, without a restart where possible'),
    async () => (await import('./reload.ts')).reloadProcesses(),
  );
  const load = () => import('./service.ts');
  const service = program.command('service').description('run Parley as a service (systemd)');
  show(
    service
      .command('install')
      .description('start it now, and whenever the machine starts')
      .option('--system', 'for the whole machine, as root (default: for your user)')
      .option('--print', 'only show the unit'),
    async ({ system = false, print = false }: { system?: boolean; print?: boolean }) =>
      (await load()).installService({ isSystem: system, prints: print }),
  );
  act(
    service.command('status').description('show whether it is running').option('--json', 'as JSON'),
    async ({ json = false }: JsonOption) => (await load()).runServiceStatus({ asJson: json }),
  );
  show(service.command('uninstall').description('stop it and remove the unit; the data stays'), async () =>
    (await load()).uninstallService(),
  );
  for (const parent of [service, program])
    act(
      parent
        .command('logs')
        .description('show the log: of the service, or the file in the data folder')
        .option('-n, --lines <count>', 'how many of the last lines (default: 200; with --since: all)')
        .option('--since <time>', 'only newer lines: 10m, 2h, 3d, or a date')
        .option('-f, --follow', 'follow until interrupted')
        .option('--json', 'the lines exactly as they were written'),
      async ({ follow = false, json = false, lines, since }: LogsFlags) =>
        (await import('./logs.ts')).runLogs({
          ...{ follows: follow, asJson: json },
          ...(lines !== undefined && { lines }),
          ...(since !== undefined && { since }),
        }),
    );
}

function addPluginCommands(plugins: Command, { show }: Actions): void {
  const load = () => import('./plugins.ts');
  show(
    plugins
      .command('add <folder|package>')
      .description('add a plugin; it runs with all of Parley’s rights, so only add code that you trust'),
    async (from: string) => (await load()).addPlugin(from),
  );
  show(plugins.command('list').description('list the plugins, and why each is on or off'), async () =>
    (await load()).listPlugins(),
  );
  show(
    plugins
      .command('check [id]')
      .description('show which files of added plugins have changed')
      .option('--accept', 'accept them as they are now'),
    async (id: string | undefined, { accept = false }: { accept?: boolean }) =>
      (await load()).checkPluginFiles(id, { accepts: accept }),
  );
  show(plugins.command('remove <id>').description('remove a plugin; its files stay'), async (id: string) =>
    (await load()).removePlugin(id),
  );
  show(
    plugins.command('new <name>').description('write a new plugin with its test into a folder'),
    async (name: string) => (await load()).newPlugin(name),
  );
}

function addConfigCommands(config: Command, { parts }: EntryCommands, { act, show }: Actions): void {
  show(config.command('check').description('report every problem with its fix'), async () =>
    (await import('./config-check.ts')).checkConfiguration(parts),
  );
  act(
    config
      .command('schema')
      .description('print the JSON Schema of parley.config.json')
      .option('--json', 'no effect: the output is always JSON'),
    async () => (await import('./config-schema.ts')).runConfigSchema(parts),
  );
}

/** Prints an error as a sentence that says what to do. */
async function report(error: unknown, program: Command, args: readonly string[]): Promise<ExitCode> {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    const sentence = describeUsageError(error, program, args);
    if (sentence !== undefined) process.stderr.write(`${stripText(sentence)}\n`);
    return 2;
  }
  if (error instanceof ParleyError && error.code !== 'internal') {
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
  const { describeFileFault } = await import('./file-fault.ts');
  const fault = describeFileFault(error);
  if (fault !== undefined) {
    process.stderr.write(`${stripText(fault)}\n`);
    return 1;
  }
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 1;
}

// Words what is wrong with the words of a command line, and what was probably meant.

/** Returns a sentence for the error; undefined when the help was shown instead. */
function describeUsageError(
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

/** Commands that work on the database itself, whether Parley runs or not. */
import type { Command } from 'commander';
import type { ExitCode } from './exit-code.ts';

/** Takes the exit code of the one command that was typed. */
export type Finish = (running: Promise<ExitCode>) => Promise<void>;

/** Adds them to the program. */
export function addOperatorCommands(program: Command, finish: Finish): void {
  addOutboxCommands(program.command('outbox').description('manage undelivered messages'), finish);
  addQueueCommands(program.command('queue').description('manage waiting messages'), finish);
  addSessionCommands(program.command('sessions').description('show conversations'), finish);
  addSubagentCommands(program.command('subagents').description('manage sub-agents'), finish);
  addPairCommands(program.command('pair').description('manage who may write to the bot'), finish);
  addSignInCommands(program.command('sign-ins').description('manage signed-in browsers'), finish);
}

function addOutboxCommands(outbox: Command, finish: Finish): void {
  outbox
    .command('list')
    .description('list undelivered messages')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runOutboxList } = await import('./outbox.ts');
      await finish(runOutboxList({ asJson: json }));
    });
  outbox
    .command('retry <part>')
    .description('resend a message (may arrive twice)')
    .option('--json', 'as JSON')
    .action(async (key: string, { json = false }: { json?: boolean }) => {
      const { runOutboxRetry } = await import('./outbox.ts');
      await finish(runOutboxRetry({ key, asJson: json }));
    });
  outbox
    .command('drop <part>')
    .description('give up an undelivered message')
    .option('--json', 'as JSON')
    .action(async (key: string, { json = false }: { json?: boolean }) => {
      const { runOutboxDrop } = await import('./outbox.ts');
      await finish(runOutboxDrop({ key, asJson: json }));
    });
}

function addQueueCommands(queue: Command, finish: Finish): void {
  queue
    .command('list')
    .description('list waiting messages of all conversations, next first')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runQueueList } = await import('./queue.ts');
      await finish(runQueueList({ asJson: json }));
    });
  queue
    .command('cancel <id>')
    .description('cancel one; its sender is told')
    .option('--json', 'as JSON')
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      const { runQueueCancel } = await import('./queue.ts');
      await finish(runQueueCancel({ id, asJson: json }));
    });
  queue
    .command('promote <id>')
    .description('move one to the front of its conversation')
    .option('--json', 'as JSON')
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      const { runQueuePromote } = await import('./queue.ts');
      await finish(runQueuePromote({ id, asJson: json }));
    });
}

function addSessionCommands(sessions: Command, finish: Finish): void {
  sessions
    .command('list')
    .description('list conversations with tokens and cost, most recent first')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runSessionsList } = await import('./sessions.ts');
      await finish(runSessionsList({ asJson: json }));
    });
  sessions
    .command('show <session>')
    .description('show one by its id or session key, with its summary and its cost by purpose')
    .option('--json', 'as JSON')
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      const { runSessionsShow } = await import('./sessions.ts');
      await finish(runSessionsShow({ id, asJson: json }));
    });
  sessions
    .command('export <session>')
    .description('print one with every message')
    .option('--json', 'as JSON')
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      const { runSessionsExport } = await import('./sessions.ts');
      await finish(runSessionsExport({ id, asJson: json }));
    });
}

function addSubagentCommands(subagents: Command, finish: Finish): void {
  subagents
    .command('list')
    .description('list sub-agents, newest first')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runSubagentsList } = await import('./subagents.ts');
      await finish(runSubagentsList({ asJson: json }));
    });
  subagents
    .command('info <id>')
    .description('show one with its task and result')
    .option('--json', 'as JSON')
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      const { runSubagentsInfo } = await import('./subagents.ts');
      await finish(runSubagentsInfo({ id, asJson: json }));
    });
  subagents
    .command('log <id>')
    .description('show what it has read and said')
    .option('--json', 'as JSON')
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      const { runSubagentsLog } = await import('./subagents.ts');
      await finish(runSubagentsLog({ id, asJson: json }));
    });
  subagents
    .command('steer <id> <message>')
    .description('send it a message, which it reads before its next step')
    .option('--json', 'as JSON')
    .action(async (id: string, text: string, { json = false }: { json?: boolean }) => {
      const { runSubagentsSteer } = await import('./subagents.ts');
      await finish(runSubagentsSteer({ id, text, asJson: json }));
    });
  subagents
    .command('stop <id>')
    .description('stop it and everything below it')
    .option('--json', 'as JSON')
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      const { runSubagentsStop } = await import('./subagents.ts');
      await finish(runSubagentsStop({ id, asJson: json }));
    });
}

function addPairCommands(pair: Command, finish: Finish): void {
  pair
    .command('list')
    .description('list requests and approvals')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runPairList } = await import('./pair.ts');
      await finish(runPairList({ asJson: json }));
    });
  pair
    .command('approve <code>')
    .description(
      'approve the person with this code or id (channel:id); the first becomes the owner if there is none',
    )
    .option('--json', 'as JSON')
    .action(async (typed: string, { json = false }: { json?: boolean }) => {
      const { runPairApprove } = await import('./pair.ts');
      await finish(runPairApprove({ typed, asJson: json }));
    });
  pair
    .command('revoke <person>')
    .description('revoke an approval (channel:id), or decline a request')
    .option('--json', 'as JSON')
    .action(async (ref: string, { json = false }: { json?: boolean }) => {
      const { runPairRevoke } = await import('./pair.ts');
      await finish(runPairRevoke({ ref, asJson: json }));
    });
}

type EndOptions = { all?: boolean; json?: boolean };

function addSignInCommands(signIns: Command, finish: Finish): void {
  signIns
    .command('list')
    .description('list signed-in browsers')
    .option('--json', 'as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { runSignInsList } = await import('./sign-ins.ts');
      await finish(runSignInsList({ asJson: json }));
    });
  signIns
    .command('end [id]')
    .description('sign a browser out')
    .option('--all', 'every browser')
    .option('--json', 'as JSON')
    .action(async (id: string | undefined, { all = false, json = false }: EndOptions) => {
      const { runSignInsEnd } = await import('./sign-ins.ts');
      await finish(runSignInsEnd({ ...(id !== undefined && { id }), isAll: all, asJson: json }));
    });
}

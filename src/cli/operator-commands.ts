/** Commands that run operations, at the running gateway or on the database. */
import type { Command } from 'commander';
import type { Actions } from './actions.ts';
import type { CommandOutput } from './print.ts';

/** Adds these commands to the program. */
export function addOperatorCommands(program: Command, { show }: Actions): void {
  const addGroup = createAddGroup(program, show);
  addGroup('outbox', 'manage undelivered messages', () => import('./queue.ts'), {
    list: ['list undelivered messages', (run) => run.listUndelivered],
    'retry <part>': ['resend a message (may arrive twice)', (run) => run.resendPart],
    'drop <part>': ['give up on an undelivered message', (run) => run.giveUpPart],
  });
  addGroup('queue', 'manage waiting messages', () => import('./queue.ts'), {
    list: ['list waiting messages of all conversations, next first', (run) => run.listQueue],
    'cancel <id>': ['cancel one and notify its sender', (run) => run.cancelWaiting],
    'promote <id>': ['move one to the front of its conversation', (run) => run.promoteWaiting],
    'edit <id> <text>': ['reword one', (run) => run.rewordWaiting],
  });
  addGroup('sessions', 'show conversations', () => import('./sessions.ts'), {
    list: ['list conversations with tokens and cost, most recent first', (run) => run.listSessions],
    'show <session>': [
      'show one by its id or session key, with its summary and its cost by purpose',
      (run) => run.showSession,
    ],
    'export <session>': ['print one with every message', (run) => run.exportSession],
  });
  addGroup('subagents', 'manage sub-agents', () => import('./sessions.ts'), {
    list: ['list sub-agents, newest first', (run) => run.listSubagents],
    'info <id>': ['show one with its task and result', (run) => run.showSubagent],
    'log <id>': ['show what it has read and said', (run) => run.showSubagentLog],
    'steer <id> <message>': [
      'send it a message, which it reads before its next step',
      (run) => run.steerSubagent,
    ],
    'stop <id>': ['stop it and everything below it', (run) => run.stopSubagent],
  });
  addTaskCommands(addGroup, show);
  addAccessGroups(addGroup);
  addSkillCommands(addGroup, show);
  addTokenCommands(addGroup, show);
  const signIns = addGroup('sign-ins', 'manage signed-in browsers', () => import('./sign-in.ts'), {
    list: ['list signed-in browsers', (run) => run.listSignIns],
  });
  show(
    signIns.command('end [id]').description('sign a browser out').option('--all', 'every browser'),
    async (id: string | undefined, { all = false }: { all?: boolean }) =>
      (await import('./sign-in.ts')).endBrowsers({ ...(id !== undefined && { id }), isAll: all }),
  );
}

function addTaskCommands(addGroup: ReturnType<typeof createAddGroup>, show: Actions['show']): void {
  const tasks = addGroup('tasks', 'manage tasks that agents have broken up', () => import('./tasks.ts'), {
    'show <id>': ['show one with everything asked and answered', (run) => run.showTask],
    'stop <id> [subtask]': ['stop it, or one of its subtasks', (run) => run.stopTask],
    'retry <id>': ['begin again with what has failed or never began', (run) => run.retryTask],
    'steer <id> <subtask> <message>': [
      'send the sub-agent on a subtask a message, which it reads before its next step',
      (run) => run.steerSubtask,
    ],
  });
  show(
    tasks
      .command('list')
      .description('list tasks with their subtasks, open ones first')
      .option('--session <session>', 'only those of this conversation, by its id or session key'),
    async (options: { session?: string }) => (await import('./tasks.ts')).listTasks(options),
  );
}

function addSkillCommands(addGroup: ReturnType<typeof createAddGroup>, show: Actions['show']): void {
  const skills = addGroup(
    'skills',
    'manage the instructions that agents read on demand',
    () => import('./skills.ts'),
    {
      list: ['list the skills of all agents, and which are on', (run) => run.listSkills],
    },
  );
  show(
    skills
      .command('check [skill]')
      .description(
        'show what is new or has changed since you accepted it, which is off until you accept that',
      )
      .option('--accept <digest>', 'accept the version with this digest'),
    async (name: string | undefined, options: { accept?: string }) =>
      (await import('./skills.ts')).checkSkills(name, options),
  );
}

function addTokenCommands(addGroup: ReturnType<typeof createAddGroup>, show: Actions['show']): void {
  const tokens = addGroup('tokens', 'manage tokens of programs', () => import('./tokens.ts'), {
    list: ['list the tokens', (run) => run.listTokens],
    'revoke <token>': ['revoke one by its id or name', (run) => run.revokeNamed],
  });
  show(
    tokens
      .command('create <name>')
      .description('create one and print it, once')
      .requiredOption('--scopes <scopes>', 'what it may do: chat,read,operate')
      .option('--days <days>', 'when it expires (default: never)'),
    async (name: string, options: { scopes: string; days?: string }) =>
      (await import('./tokens.ts')).addToken(name, options),
  );
}

/** Adds the commands that decide who may do what. */
function addAccessGroups(addGroup: ReturnType<typeof createAddGroup>): void {
  addGroup('hooks', 'manage hooks', () => import('./hooks.ts'), {
    list: ['list hooks and how often each failed', (run) => run.listHooks],
    'accept <script>': ['accept a script of the workspace as it is now', (run) => run.acceptScript],
  });
  addGroup('pair', 'manage who may write to the bot', () => import('./pair.ts'), {
    list: ['list requests and approvals', (run) => run.listAccess],
    'approve <code>': [
      'approve the person with this code or id (channel:id); the first becomes the owner if there is none',
      (run) => run.approvePerson,
    ],
    'revoke <person>': ['revoke an approval (channel:id), or decline a request', (run) => run.revokePerson],
  });
  addGroup('approvals', 'decide about calls of tools', () => import('./approvals.ts'), {
    list: ['list calls that wait for an approval, and calls allowed for longer', (run) => run.listApprovals],
    'approve <id>': ['run the call once', (run) => (id) => run.answer(id, 'approve')],
    'always <id>': [
      'run the call, and the same call there for the next 30 days',
      (run) => (id) => run.answer(id, 'always'),
    ],
    'deny <id>': ['don’t run the call', (run) => (id) => run.answer(id, 'deny')],
    'revoke <id>': ['ask again about a call that was allowed for longer', (run) => run.revoke],
  });
  addGroup('link', 'manage linked accounts', () => import('./pair.ts'), {
    list: ['list the accounts that count as one person', (run) => run.listLinks],
    'remove <account>': [
      'unlink an account (channel:id) that was linked in chat, and notify it',
      (run) => run.separateAccount,
    ],
  });
}

/** Commands by their words: what each does, and which function of the group's file runs it with the arguments. */
type Commands<File> = Readonly<
  Record<string, readonly [does: string, pick: (file: File) => (...args: string[]) => Promise<CommandOutput>]>
>;

/** Returns a function that adds a group whose file is loaded only when one of its commands runs. */
function createAddGroup(program: Command, show: Actions['show']) {
  return <File>(name: string, does: string, load: () => Promise<File>, commands: Commands<File>) => {
    const group = program.command(name).description(does);
    for (const [words, [description, pick]] of Object.entries(commands))
      show(group.command(words).description(description), async (...args: string[]) =>
        pick(await load())(...args),
      );
    return group;
  };
}

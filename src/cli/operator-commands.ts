/** Commands that run operations, at the running gateway or on the database. */
import type { Command } from 'commander';
import type { Actions } from './actions.ts';

/** Adds these commands to the program. */
export function addOperatorCommands(program: Command, actions: Actions): void {
  addOutboxCommands(program.command('outbox').description('manage undelivered messages'), actions);
  addQueueCommands(program.command('queue').description('manage waiting messages'), actions);
  addSessionCommands(program.command('sessions').description('show conversations'), actions);
  addSubagentCommands(program.command('subagents').description('manage sub-agents'), actions);
  addPairCommands(program.command('pair').description('manage who may write to the bot'), actions);
  addLinkCommands(program.command('link').description('manage linked accounts'), actions);
  addSignInCommands(program.command('sign-ins').description('manage signed-in browsers'), actions);
}

function addOutboxCommands(outbox: Command, { show }: Actions): void {
  const load = () => import('./outbox.ts');
  show(outbox.command('list').description('list undelivered messages'), async () =>
    (await load()).listUndelivered(),
  );
  show(
    outbox.command('retry <part>').description('resend a message (may arrive twice)'),
    async (key: string) => (await load()).resendPart(key),
  );
  show(outbox.command('drop <part>').description('give up on an undelivered message'), async (key: string) =>
    (await load()).giveUpPart(key),
  );
}

function addQueueCommands(queue: Command, { show }: Actions): void {
  const load = () => import('./queue.ts');
  show(
    queue.command('list').description('list waiting messages of all conversations, next first'),
    async () => (await load()).listQueue(),
  );
  show(queue.command('cancel <id>').description('cancel one and notify its sender'), async (id: string) =>
    (await load()).cancelWaiting(id),
  );
  show(
    queue.command('promote <id>').description('move one to the front of its conversation'),
    async (id: string) => (await load()).promoteWaiting(id),
  );
  show(queue.command('edit <id> <text>').description('reword one'), async (id: string, text: string) =>
    (await load()).rewordWaiting(id, text),
  );
}

function addSessionCommands(sessions: Command, { show }: Actions): void {
  const load = () => import('./sessions.ts');
  show(
    sessions.command('list').description('list conversations with tokens and cost, most recent first'),
    async () => (await load()).listSessions(),
  );
  show(
    sessions
      .command('show <session>')
      .description('show one by its id or session key, with its summary and its cost by purpose'),
    async (id: string) => (await load()).showSession(id),
  );
  show(sessions.command('export <session>').description('print one with every message'), async (id: string) =>
    (await load()).exportSession(id),
  );
}

function addSubagentCommands(subagents: Command, { show }: Actions): void {
  const load = () => import('./subagents.ts');
  show(subagents.command('list').description('list sub-agents, newest first'), async () =>
    (await load()).listSubagents(),
  );
  show(subagents.command('info <id>').description('show one with its task and result'), async (id: string) =>
    (await load()).showSubagent(id),
  );
  show(subagents.command('log <id>').description('show what it has read and said'), async (id: string) =>
    (await load()).showSubagentLog(id),
  );
  show(
    subagents
      .command('steer <id> <message>')
      .description('send it a message, which it reads before its next step'),
    async (id: string, text: string) => (await load()).steerSubagent(id, text),
  );
  show(subagents.command('stop <id>').description('stop it and everything below it'), async (id: string) =>
    (await load()).stopSubagent(id),
  );
}

function addPairCommands(pair: Command, { show }: Actions): void {
  const load = () => import('./pair.ts');
  show(pair.command('list').description('list requests and approvals'), async () =>
    (await load()).listAccess(),
  );
  show(
    pair
      .command('approve <code>')
      .description(
        'approve the person with this code or id (channel:id); the first becomes the owner if there is none',
      ),
    async (typed: string) => (await load()).approvePerson(typed),
  );
  show(
    pair.command('revoke <person>').description('revoke an approval (channel:id), or decline a request'),
    async (ref: string) => (await load()).revokePerson(ref),
  );
}

function addLinkCommands(link: Command, { show }: Actions): void {
  const load = () => import('./link.ts');
  show(link.command('list').description('list the accounts that count as one person'), async () =>
    (await load()).listLinks(),
  );
  show(
    link
      .command('remove <account>')
      .description('unlink an account (channel:id) that was linked in chat, and notify it'),
    async (ref: string) => (await load()).separateAccount(ref),
  );
}

function addSignInCommands(signIns: Command, { show }: Actions): void {
  const load = () => import('./sign-ins.ts');
  show(signIns.command('list').description('list signed-in browsers'), async () =>
    (await load()).listSignIns(),
  );
  show(
    signIns.command('end [id]').description('sign a browser out').option('--all', 'every browser'),
    async (id: string | undefined, { all = false }: { all?: boolean }) =>
      (await load()).endBrowsers({ ...(id !== undefined && { id }), isAll: all }),
  );
}

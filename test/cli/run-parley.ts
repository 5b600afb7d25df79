import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { nodeFlags } from '../../bin/node-settings.mjs';

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };
type Env = Readonly<Record<string, string>>;

/** One for all tests of this process. */
const host: { child?: ChildProcess; isBusy: boolean } = { isBusy: false };

/**
 * Runs `parley …` outside this process, and inherits only PATH and HOME from its environment: in the host of commands,
 * or in a process of its own if the host is busy.
 */
export async function runParley(args: readonly string[], env: Env = {}): Promise<Ran> {
  if (host.isBusy) return runProcess(args, env);
  host.isBusy = true;
  try {
    return await runInHost(args, env);
  } finally {
    host.isBusy = false;
  }
}

/** Runs `parley …` in a process of its own. */
async function runProcess(args: readonly string[], env: Env = {}): Promise<Ran> {
  const child = spawn(process.execPath, ['../../bin/parley.mjs', ...args], {
    cwd: import.meta.dirname,
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [code, stdout, stderr] = await Promise.all([
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, stdout, stderr };
}

async function runInHost(args: readonly string[], env: Env): Promise<Ran> {
  const child = host.child ?? startHost();
  const answer = once(child, 'message');
  const death = once(child, 'exit').then(() => {
    throw new Error(`test error: the host of commands died of ${args.join(' ')}`);
  });
  child.send({ args, env: environment(env) });
  const [ran] = await Promise.race([answer, death]);
  return ran as Ran;
}

function startHost(): ChildProcess {
  const child = fork(join(import.meta.dirname, 'command-host.ts'), [], {
    cwd: import.meta.dirname,
    execArgv: [...nodeFlags],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  // It ends with this process.
  child.unref();
  child.channel?.unref();
  child.setMaxListeners(0);
  child.once('exit', () => {
    delete host.child;
  });
  host.child = child;
  return child;
}

/** Its home isn't the checkout, whose .env is the developer's. */
function environment(env: Env): Env {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, PARLEY_TEST_HOME: '/nowhere', ...env };
}

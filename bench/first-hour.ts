/**
 * A newcomer's first hour in figures, on a clone of the committed state with an empty npm cache: until the demo model's
 * first answer in the terminal, then, by typing answers, until the first one on a network. People type more slowly.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keys, typeTo } from '../test/cli/typed-answers.ts';
import { startAnthropicServer } from '../test/platforms/anthropic/server.ts';
import { startTelegramServer } from '../test/platforms/telegram/server.ts';
import { now, withDeadline } from './clock.ts';
import type { Figure } from './figure.ts';

const root = join(import.meta.dirname, '..');
const patienceMs = 300_000;
const key = 'sk-ant-api03-0000000001';
const ann = { id: 4711, is_bot: false, first_name: 'Ann' };

/** Process groups that were started, to be ended if the run fails. */
const groups = new Set<number>();

type Shell = { readonly clone: string; readonly env: Readonly<Record<string, string>> };

export async function measureFirstHour(): Promise<readonly Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-first-hour-'));
  const [telegram, model] = await Promise.all([startTelegramServer(), startAnthropicServer({ keys: [key] })]);
  const shell = {
    clone: join(folder, 'parley'),
    env: {
      ...networkSettings(),
      PATH: process.env.PATH ?? '',
      HOME: folder,
      npm_config_cache: join(folder, 'npm-cache'),
      PARLEY_PORT: '0',
      TELEGRAM_API_ROOT: telegram.apiRoot,
      ANTHROPIC_BASE_URL: model.url,
    },
  };
  try {
    const begun = now();
    execFileSync('git', ['clone', '-q', root, shell.clone], { stdio: 'inherit' });
    const seconds = (since: number) => (now() - since) / 1000;
    const cloned = now();
    const first = await start(shell);
    const running = seconds(cloned);
    await chat(shell, 'Hello!');
    const chatted = seconds(begun);
    await stop(first);
    const size = await megabytesOf(shell.clone);

    const asked = now();
    await onboard(shell, telegram.token);
    const second = await start(shell);
    telegram.userSends({ from: ann, text: 'Hello!' });
    await telegram.waitFor(() => telegram.botMessages(ann.id)[0], patienceMs);
    const answered = seconds(asked);
    await stop(second);
    const figure = (name: string, parley: number, target: string, unit = 's') => ({
      name,
      unit,
      parley,
      target,
    });
    return [
      figure('npm start after the clone, empty npm cache', running, '≤ 30 s'),
      figure('git clone → first answer in the terminal', chatted, '≤ 60 s'),
      figure('parley onboard → first answer on a network', answered, '≤ 120 s'),
      figure('the clone with its installation', size, '≤ 300 MB', 'MB'),
    ];
  } finally {
    for (const pid of groups) endGroup(pid);
    await Promise.all([telegram.close(), model.close()]);
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Settings with which this machine reaches npm's registry. */
function networkSettings(): Record<string, string> {
  const names =
    /^(?:npm_config_(?:(?:user|global)config|registry|cafile)|(?:https?|no)_proxy|node_extra_ca_certs|ssl_cert_(?:file|dir))$/i;
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => names.test(entry[0]) && entry[1] !== undefined,
    ),
  );
}

/** Resolves when the start table is printed; rejects when the process ends before that. */
function start({ clone, env }: Shell): Promise<ChildProcess> {
  const child = spawn('npm', ['start'], {
    cwd: clone,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.pid !== undefined) groups.add(child.pid);
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`npm start ended with ${code}`);
  });
  const running = withDeadline<ChildProcess>(patienceMs, 'npm start printed no table', (resolve) => {
    let shown = '';
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
      if (shown.includes('Parley is running')) resolve(child);
    });
  });
  return Promise.race([running, ended]);
}

/** Ends npm's entire group, which includes the gateway. */
async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  if (child.pid === undefined) return;
  process.kill(-child.pid, 'SIGTERM');
  await ended;
  groups.delete(child.pid);
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}

/** Pipes the line to `parley chat`, which ends with its answer. */
async function chat({ clone, env }: Shell, line: string): Promise<void> {
  const child = spawn(process.execPath, [join(clone, 'bin/parley.mjs'), 'chat'], {
    cwd: clone,
    env,
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  child.stdin.end(`${line}\n`);
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`parley chat ended with ${code}`);
}

async function onboard({ clone, env }: Shell, token: string): Promise<void> {
  const ends: (() => void)[] = [];
  const person = typeTo(['onboard'], { cwd: clone, env, root: clone, atEnd: (end) => ends.push(end) });
  try {
    await person.answer('Which model answers?', keys.enter);
    await person.answer(/◆ +API key of Anthropic/, `${key}${keys.enter}`);
    await person.answer('Which network', keys.enter);
    await person.answer('Token of the bot', `${token}${keys.enter}`);
    await person.answer('Who is the owner', `${keys.down}${keys.enter}`);
    await person.answer('Your permanent id', `${ann.id}${keys.enter}`);
    await person.answer('Which groups', keys.enter);
    const code = await person.ended;
    if (code !== 0) throw new Error(`parley onboard ended with ${code}:\n${person.shown()}`);
  } finally {
    for (const end of ends) end();
  }
}

/** Returns the space that the folder uses on the disk. */
async function megabytesOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(
    entries.map(async (name) => (await lstat(join(folder, name))).blocks * 512),
  );
  return sizes.reduce((sum, size) => sum + size, 0) / 1e6;
}

/** Shows the log: of the service from systemd's journal, otherwise the file in the data folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createReadStream, existsSync } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { startCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { logPath } from '../logging/log-file.ts';
import { loadLineRenderer } from '../logging/logger.ts';
import { stripText } from '../logging/redaction.ts';
import type { ExitCode } from './exit-code.ts';
import { configForReading } from './readable-config.ts';
import { installedService, isServiceActive } from './service.ts';

/** Prints the newest lines of the log, oldest first. */
export async function runLogs(options: {
  /** How many of the last lines are shown. Default: 200, or all since `since`. */
  readonly lines?: string;
  /** `10m`, `2h`, `3d`, or a date. */
  readonly since?: string;
  /** Until interrupted. */
  readonly follows: boolean;
  /** Prints the lines exactly as they were written. */
  readonly asJson: boolean;
}): Promise<ExitCode> {
  const { lines, since, follows, asJson } = options;
  const from = since === undefined ? undefined : readSince(since, Date.now());
  const count = lines === undefined ? (from === undefined ? 200 : maxLines) : readCount(lines);
  const render = asJson ? (line: string) => line : await readableLines();
  const print = (line: string) => void process.stdout.write(`${render(line)}\n`);
  const { dataDir } = configForReading();
  const path = logPath(dataDir);
  const service = installedService();
  if (service !== undefined && (isServiceActive(service) || !existsSync(path)))
    return readJournal({ isSystem: service.isSystem, from, count, follows }, print);
  if (!existsSync(path) && !follows)
    throw new ParleyError(
      'invalid_input',
      `There is no log in ${path} yet. Start Parley: ${startCommand}. With logFile.enabled set to false, it only logs to its output.`,
    );
  await printLast(path, { from, count }, print);
  if (follows) await follow(path, print);
  return 0;
}

const maxLines = 1_000_000;
const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads a time in ms: so long ago, or a date in this machine's time zone. Throws `invalid_input`. */
export function readSince(text: string, now: number): number {
  const [, amount, unit = ''] = /^(\d{1,6})\s*([smhd])$/.exec(text.trim()) ?? [];
  if (amount !== undefined) return now - Number(amount) * (units[unit] ?? 0);
  const day = /^\d{4}-\d\d-\d\d$/.test(text.trim()) ? `${text.trim()}T00:00` : text.trim();
  const at = Date.parse(day);
  if (!Number.isNaN(at)) return at;
  throw new ParleyError(
    'invalid_input',
    `“${stripText(text)}” isn't a time. Write 10m, 2h or 3d, or a date such as "2026-11-27 14:00".`,
  );
}

function readCount(text: string): number {
  const count = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= maxLines) return count;
  throw new ParleyError(
    'invalid_input',
    `-n takes a number of lines from 1 to ${maxLines}, for example: -n 50`,
  );
}

/** Returns a function that makes a line readable; one that isn't JSON, such as a crash, is only made harmless. */
async function readableLines(): Promise<(line: string) => string> {
  const isColored = process.stdout.isTTY === true && process.stdout.hasColors();
  const render = await loadLineRenderer({ isColored, withDate: true });
  return (line) => (line.startsWith('{') ? render(line).replace(/\n$/, '') : stripText(line));
}

type Print = (line: string) => void;
type Part = { readonly from: number | undefined; readonly count: number };

/** Prints the last lines of both files, oldest first. */
async function printLast(path: string, { from, count }: Part, print: Print): Promise<void> {
  const last: string[] = [];
  let isWanted = from === undefined;
  for (const file of [`${path}.1`, path]) {
    if (!existsSync(file)) continue;
    for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
      // Lines are in order of time; those without one belong to the line before.
      isWanted ||= from !== undefined && timeOf(line) >= from;
      if (!isWanted) continue;
      last.push(line);
      // Removing one at a time would take the whole list apart for each line.
      if (last.length > count * 2) last.splice(0, last.length - count);
    }
  }
  for (const line of last.slice(-count)) print(line);
}

function timeOf(line: string): number {
  const [, time = ''] = /^\{"level":"\w+","time":"([^"]{1,40})"/.exec(line) ?? [];
  return Date.parse(time);
}

/** How often a followed file is looked at, ms. */
const lookEveryMs = 250;

/** Prints what is appended to the file from now on, also after it was replaced by a new one. */
async function follow(path: string, print: Print): Promise<void> {
  let file = await openIfThere(path);
  let at = (await file?.stat())?.size ?? 0;
  let rest = '';
  // Its reader may end first, as `head` does.
  while (process.stdout.writable) {
    await delay(lookEveryMs);
    const next = await openIfReplaced(path, file);
    const { text, end } = await readFrom(file, at);
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) print(line);
    at = end;
    if (next === undefined) continue;
    await file?.close();
    file = next;
    at = 0;
  }
  await file?.close();
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  return open(path, 'r').catch(() => undefined);
}

async function openIfReplaced(path: string, file: FileHandle | undefined): Promise<FileHandle | undefined> {
  const [found, own] = await Promise.all([stat(path).catch(() => undefined), file?.stat()]);
  return found === undefined || found.ino === own?.ino ? undefined : openIfThere(path);
}

async function readFrom(file: FileHandle | undefined, at: number) {
  const chunks: Buffer[] = [];
  let end = at;
  for (;;) {
    const buffer = Buffer.alloc(64 * 1024);
    const { bytesRead = 0 } = (await file?.read(buffer, 0, buffer.length, end)) ?? {};
    if (bytesRead === 0) return { text: Buffer.concat(chunks).toString('utf8'), end };
    chunks.push(buffer.subarray(0, bytesRead));
    end += bytesRead;
  }
}

type JournalPart = Part & { readonly isSystem: boolean; readonly follows: boolean };

async function readJournal({ isSystem, from, count, follows }: JournalPart, print: Print): Promise<ExitCode> {
  const args = [
    isSystem ? '--unit=parley.service' : '--user-unit=parley.service',
    ...['--output=cat', `--lines=${count}`],
    ...(from === undefined ? [] : [`--since=@${Math.floor(from / 1000)}`]),
    ...(follows ? ['--follow'] : ['--no-pager']),
  ];
  const journal: ChildProcess = spawn('journalctl', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => {
    journal.once('error', () => resolve(null));
    journal.once('close', resolve);
  });
  if (journal.stdout) for await (const line of createInterface({ input: journal.stdout })) print(line);
  return (await ended) === 0 ? 0 : 1;
}

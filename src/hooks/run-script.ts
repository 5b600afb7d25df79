import { type ChildProcess, spawn } from 'node:child_process';
import { parseJson } from '#channel-kit/parse-json.ts';
import { childEnvironment } from '../config/environment.ts';

type ScriptCall = { readonly file: string; readonly folder: string; readonly input: string };

const maxOutputBytes = 256 * 1024;
/** How long pipes may stay open after the script's end: something it started may hold them. */
const drainMs = 200;

/**
 * Runs a script with `input` on its stdin, and returns the JSON that it prints; undefined if it prints nothing. It sees
 * only the environment that programs need to run. Its process group is killed at its end, and when the signal aborts.
 * Rejects if it fails, prints no JSON or too much.
 */
export async function runScript({ file, folder, input }: ScriptCall, signal: AbortSignal): Promise<unknown> {
  const child = spawn(file, [], { cwd: folder, env: childEnvironment(), detached: true });
  const kill = () => killGroup(child);
  signal.addEventListener('abort', kill, { once: true });
  try {
    const { output, error, code } = await resultOf(child, input);
    if (code !== 0) throw new Error(`it ended with ${code}: ${firstLine(error)}`);
    if (output.trim() === '') return undefined;
    return readDecision(output);
  } finally {
    signal.removeEventListener('abort', kill);
    kill();
    for (const stream of child.stdio) stream?.destroy();
  }
}

type ScriptResult = { readonly output: string; readonly error: string; readonly code: number | string };

function resultOf(child: ChildProcess, input: string): Promise<ScriptResult> {
  return new Promise((resolve, reject) => {
    const texts = { output: '', error: '' };
    const read = (name: keyof typeof texts, chunk: string) => {
      texts[name] += chunk;
      if (texts[name].length <= maxOutputBytes) return;
      killGroup(child);
      reject(new Error(`it printed more than ${maxOutputBytes} bytes`));
    };
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => read('output', chunk));
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => read('error', chunk));
    // A script that ends early doesn't read its input, which its end says.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
    child.on('error', (error) => reject(new Error(`it can't be started: ${error.message}`)));
    let end: ScriptResult['code'] = 'nothing';
    const done = () => resolve({ ...texts, code: end });
    child.on('exit', (code, signal) => {
      end = code ?? signal ?? 'nothing';
      setTimeout(done, drainMs).unref();
    });
    child.on('close', done);
  });
}

function readDecision(output: string): unknown {
  try {
    return parseJson(output);
  } catch {
    throw new Error(`it printed no JSON: ${firstLine(output)}`);
  }
}

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, 200);
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

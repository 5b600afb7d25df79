/**
 * Runs commands of `parley` one after the other in one process, each in an environment of its own: loading the modules
 * takes longer than most commands. What starts Parley is evaluated for each of them, as by a process of its own.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleFolder } from '../../bin/bundle.mjs';

type Command = { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };

const root = join(import.meta.dirname, '../..');
const bundle = join(bundleFolder(root), 'main.mjs');
const main = pathToFileURL(existsSync(bundle) ? bundle : join(root, 'src/main.ts'));
const streams = ['stdout', 'stderr'] as const;
const said = { stdout: '', stderr: '' };
let count = 0;

for (const name of streams)
  process[name].write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    said[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    const done = rest.at(-1);
    if (typeof done === 'function') done();
    return true;
  };
process.setMaxListeners(0);
process.on('disconnect', () => process.exit());
process.on('message', async ({ args, env }: Command) => {
  process.argv = [process.execPath, fileURLToPath(main), ...args];
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  Object.assign(said, { stdout: '', stderr: '' });
  process.exitCode = undefined;
  const before = openResources();
  count += 1;
  await (await import(`${main.href}?run=${count}`)).ended;
  const code = Number(process.exitCode ?? 0);
  await untilClosed(before);
  for (const name of streams) process[name].removeAllListeners('error');
  process.send?.({ code, ...said });
});

/** What keeps a process from ending. */
function openResources(): number {
  return process.getActiveResourcesInfo().length;
}

/** Like a process of its own, a command is over once it leaves nothing open. */
async function untilClosed(before: number): Promise<void> {
  while (openResources() > before) await pause(5, undefined, { ref: false });
}

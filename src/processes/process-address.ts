/**
 * The address of each process on the data folder, in a file next to its lock. The lock proves that the process is alive
 * and so still has its port. That is why the access token may be sent there, and nowhere else.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Closers } from './closers.ts';
import { liveProcesses, type ProcessFiles } from './process-files.ts';

const schema = z.object({
  url: z.url({ protocol: /^http$/ }),
  role: z.enum(['all', 'gateway', 'worker']),
  /** Names of the Parley variables that are set for it. */
  variables: z.array(z.string()).readonly().default([]),
});

/** The address of a live process, and its role. */
export type ProcessAddress = z.infer<typeof schema> & { readonly pid: number };

/**
 * Writes this process's address for the command line. `closers` remove it before the port is released, since another
 * program may use the port from then on. Rejects if the file can't be written.
 */
export async function publishProcessAddress(
  { addressPath }: Pick<ProcessFiles, 'addressPath'>,
  { url, role, variables }: Omit<ProcessAddress, 'pid'>,
  closers: Pick<Closers, 'add'>,
): Promise<void> {
  closers.add('address', () => rm(addressPath, { force: true }));
  await writeFile(addressPath, `${JSON.stringify({ url, role, variables })}\n`, { mode: 0o600 });
}

/** Reads the addresses of the processes that use the folder now, except those that haven't published theirs yet. */
export async function readProcessAddresses(dataDir: string): Promise<readonly ProcessAddress[]> {
  const read = liveProcesses(dataDir).map(async ({ name, pid }) => {
    const path = join(dataDir, 'processes', `${name}.address`);
    const written = await readFile(path, 'utf8').catch(() => '');
    const address = parse(written);
    return address === undefined ? [] : [{ ...address, pid }];
  });
  return (await Promise.all(read)).flat();
}

/** Undefined if the file is missing or was cut off by a crash. */
function parse(text: string): z.infer<typeof schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Where each process on the data folder answers `/healthz`, `/readyz` and `/metrics`: a file beside its lock. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { liveProcesses } from './process-files.ts';

const schema = z.object({
  url: z.url({ protocol: /^http$/ }),
  role: z.enum(['all', 'gateway', 'worker']),
  /** Names of Parley's variables that are set for it. */
  variables: z.array(z.string()).readonly().default([]),
});

/** Where a live process answers, and what it does. */
export type ProcessAddress = z.infer<typeof schema> & { readonly pid: number };

/** Writes this process's address for the command line. Rejects when the disk refuses it. */
export async function writeProcessAddress(
  path: string,
  { url, role, variables }: Omit<ProcessAddress, 'pid'>,
): Promise<void> {
  await writeFile(path, `${JSON.stringify({ url, role, variables })}\n`, { mode: 0o600 });
}

/** Addresses of the processes that use the folder now; one that has not come to its address yet is left out. */
export async function readProcessAddresses(dataDir: string): Promise<readonly ProcessAddress[]> {
  const read = liveProcesses(dataDir).map(async ({ name, pid }) => {
    const path = join(dataDir, 'processes', `${name}.address`);
    const written = await readFile(path, 'utf8').catch(() => '');
    const address = parse(written);
    return address === undefined ? [] : [{ ...address, pid }];
  });
  return (await Promise.all(read)).flat();
}

/** Undefined for what is not there, or was cut off by a crash. */
function parse(text: string): z.infer<typeof schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

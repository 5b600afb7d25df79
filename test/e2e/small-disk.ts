import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { mkdir, mkdtemp, open, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const megabyte = 1024 * 1024;

export type SmallDisk = {
  /** A folder on it, for a gateway's data. The test process logs elsewhere. */
  readonly dataDir: string;
  /** Fills that many megabytes; without a number, all free space. */
  fill(megabytes?: number): Promise<void>;
  /** Frees what `fill` took. */
  free(): Promise<void>;
};

/** Says whether this process may mount a file system in memory. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'parley-mount-'));
  try {
    mount(folder, 1);
    unmount(folder);
    return true;
  } catch {
    // Not root, or a container without the right to mount.
    return false;
  } finally {
    rmdirSync(folder);
  }
}

function mount(folder: string, megabytes: number): void {
  const options = ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder];
  execFileSync('mount', options, { stdio: 'ignore' });
}

function unmount(folder: string): void {
  execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
}

export async function mountSmallDisk(
  megabytes: number,
  atEnd: (end: () => Promise<void>) => void,
): Promise<SmallDisk> {
  const home = await mkdtemp(join(tmpdir(), 'parley-disk-'));
  const disk = join(home, 'disk');
  await mkdir(disk);
  mount(disk, megabytes);
  atEnd(async () => {
    unmount(disk);
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  });
  const dataDir = join(disk, 'data');
  await mkdir(dataDir);
  await symlink(join(home, 'test.log'), join(dataDir, 'test.log'));
  const ballast = join(disk, 'ballast');
  return {
    dataDir,
    fill: (wanted = Number.POSITIVE_INFINITY) => write(ballast, wanted),
    free: () => rm(ballast, { force: true }),
  };
}

async function write(path: string, megabytes: number): Promise<void> {
  const file = await open(path, 'a');
  try {
    for (let written = 0; written < megabytes; written++) await file.write(Buffer.alloc(megabyte));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    await writeRest(file);
  } finally {
    await file.close();
  }
}

/** Fills the last pages one by one. */
async function writeRest(file: Awaited<ReturnType<typeof open>>): Promise<void> {
  try {
    for (;;) await file.write(Buffer.alloc(4096));
  } catch {
    // Full to the last page, which is the goal.
  }
}

import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';

/** `sun_path` of unix(7) minus its final NUL: 108 bytes on Linux, 104 on macOS and the BSDs. */
const longestPath = process.platform === 'linux' ? 107 : 103;

/**
 * Chooses where the private server listens: in the data folder or, if that path is too long for a socket, in the user's
 * own folder under the system's temporary one, named after the data folder. Throws ParleyError `redis_unavailable` if
 * that folder belongs to someone else.
 */
export function chooseSocketPath(dataDir: string, temporary: string = tmpdir()): string {
  const inDataDir = join(dataDir, 'redis.sock');
  if (Buffer.byteLength(inDataDir) <= longestPath) return inDataDir;
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const folder = join(temporary, `parley-${name}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory() || (process.getuid !== undefined && stat.uid !== process.getuid())) {
    throw new ParleyError(
      'redis_unavailable',
      `${folder} belongs to another user, so Redis can't listen there. Remove it, or use a data folder with a shorter path.`,
    );
  }
  chmodSync(folder, 0o700);
  return join(folder, 'redis.sock');
}

/**
 * Files that the page sends before the message that names them. They wait in the channel's folder until core has stored
 * them; those whose message never arrives are removed after a week, or when others need the space.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { cappedDownload } from '#channel-kit/capped-download.ts';
import type { MediaAbility } from '#contracts/channel-abilities.ts';
import type { Clock } from '#contracts/clock.ts';
import type { UploadedFile, WebhookAnswer } from '#contracts/route-host.ts';

export type Uploads = {
  /** Keeps a file and returns the id by which a message refers to it. */
  take(file: UploadedFile): Promise<WebhookAnswer>;
  /** Removes a file that no message will name. An id that isn't known changes nothing. */
  drop(id: string): Promise<void>;
  readonly media: MediaAbility;
};

/**
 * How many files may wait at once. At this number, those that have waited for an hour are removed: a message comes
 * right after its files.
 */
const maxFiles = 100;
const makesRoomMs = 3_600_000;
const keptMs = 7 * 86_400_000;
const idForm = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

export function createUploads({
  folder,
  clock,
}: {
  readonly folder: string;
  readonly clock: Clock;
}): Uploads {
  return {
    take: async ({ bytes, maxBytes }) => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if ((await tidy(folder, clock.now())) >= maxFiles)
        return { status: 507, body: JSON.stringify({ error: { code: 'too_many_files' } }) };
      const id = crypto.randomUUID();
      const partial = join(folder, `${id}.part`);
      try {
        const isWhole = await keep(partial, bytes, maxBytes);
        if (!isWhole) return { status: 413, body: JSON.stringify({ error: { code: 'too_large' } }) };
        await rename(partial, join(folder, id));
        return { status: 200, body: JSON.stringify({ id }) };
      } finally {
        await rm(partial, { force: true });
      }
    },
    drop: async (id) => {
      if (idForm.test(id)) await rm(pathOf(folder, id), { force: true });
    },
    media: {
      fetch: (ref, maxBytes, signal) =>
        cappedDownload(
          {
            open: async () => ({ statedBytes: undefined, body: createReadStream(pathOf(folder, ref.ref)) }),
            networkReason: () => 'the file is gone',
            mayReturn: false,
          },
          { ref, maxBytes, signal },
        ),
      release: (ref) => rm(pathOf(folder, ref.ref), { force: true }),
    },
  };
}

/**
 * Returns false if the file is larger than the limit. It is still read to its end, because a browser reads no answer
 * before it has sent everything.
 */
async function keep(path: string, bytes: AsyncIterable<Uint8Array>, maxBytes: number): Promise<boolean> {
  let size = 0;
  const counted = async function* () {
    for await (const chunk of bytes) {
      size += chunk.length;
      if (size <= maxBytes) yield chunk;
    }
  };
  await pipeline(Readable.from(counted()), createWriteStream(path, { mode: 0o600, flush: true }));
  return size <= maxBytes;
}

/** Removes files whose message never arrived, and returns how many are left. */
async function tidy(folder: string, now: number): Promise<number> {
  const found = (await readdir(folder)).map(async (name) => {
    const path = join(folder, name);
    const at = await stat(path).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    );
    return at === undefined ? [] : [{ path, ageMs: now - at }];
  });
  const files = (await Promise.all(found)).flat().sort((a, b) => b.ageMs - a.ageMs);
  let left = files.length;
  for (const { path, ageMs } of files) {
    if (ageMs <= (left < maxFiles ? keptMs : makesRoomMs)) break;
    await rm(path, { force: true });
    left -= 1;
  }
  return left;
}

/** The frame's schema only accepts ids, and a path is never made of anything else. */
function pathOf(folder: string, id: string): string {
  if (!idForm.test(id)) throw new RangeError('not an upload id');
  return join(folder, id);
}

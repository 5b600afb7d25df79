/** The skills that the owner has accepted, with their digests: a file in the data folder, where no agent can write. */
import { randomUUID } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';

const lockSchema = z.strictObject({
  version: z.literal(1),
  /** By folder, relative to the data folder if it is in there, so that a restored backup fits. */
  skills: z.record(
    z.string(),
    z.strictObject({
      digest: z.string().regex(/^sha256-[0-9a-f]{64}$/),
      acceptedAt: z.iso.datetime(),
      /** Digest of each file, to show what has changed. */
      files: z.record(z.string(), z.string()),
    }),
  ),
});

/** Skills that the owner has accepted, by folder as `lockKey` names it. */
export type AcceptedSkills = z.output<typeof lockSchema>['skills'];
export type AcceptedSkill = AcceptedSkills[string];

/** Returns the path of the lock file. */
export function skillLockPath(dataDir: string): string {
  return join(dataDir, 'skills.json');
}

/** Reads the accepted skills; there are none without the file. Throws `config_invalid` if it isn't valid. */
export async function readSkillLock(path: string): Promise<AcceptedSkills> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {};
    throw error;
  }
  try {
    return lockSchema.parse(JSON.parse(text)).skills;
  } catch (cause) {
    const what = `${path} isn't valid, so no skill is on. Remove it and accept the skills again`;
    throw new ParleyError('config_invalid', what, { cause });
  }
}

/** Replaces the file in one step, readable only by its owner. */
export async function writeSkillLock(path: string, skills: AcceptedSkills): Promise<void> {
  const fresh = `${path}.${randomUUID()}`;
  try {
    const file = await open(fresh, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ version: 1, skills }, undefined, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, path);
  } finally {
    await rm(fresh, { force: true });
  }
}

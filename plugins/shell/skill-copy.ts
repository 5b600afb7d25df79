/** Gives a command the files of a skill exactly as its owner has accepted them: in a copy that nobody else changes. */
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { SkillFile } from '#contracts/skill.ts';

/** A skill as one command uses it. */
export type SkillUse = {
  readonly name: string;
  readonly files: ReadonlyMap<string, SkillFile>;
  /** Variables that only commands of this skill get. */
  readonly environment: Readonly<Record<string, string>>;
};

/** Where the copy is on the machine; `remove` it once the command has ended. */
export type SkillCopy = { readonly folder: string; remove(): Promise<void> };

export async function copySkill({ files }: Pick<SkillUse, 'files'>): Promise<SkillCopy> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-skill-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    for (const [path, { bytes, isExecutable }] of files) {
      const copy = join(folder, path);
      await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
      await writeFile(copy, bytes, { flag: 'wx' });
      await chmod(copy, isExecutable ? 0o500 : 0o400);
    }
    return { folder, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { findSkills } from '../../src/skills/find-skills.ts';
import { readSkillLock, skillLockPath, writeSkillLock } from '../../src/skills/skill-lock.ts';
import { aFolder } from '../support/own-folder.ts';

export const weatherText = `---
name: weather
description: Tells the weather of a place. Use when someone asks for it.
---
Run scripts/ask.sh with the name of the place.
`;

export type Places = { readonly dataDir: string; readonly workspace: string };

/** Creates an empty data folder with an agent's workspace. */
export async function somePlaces(): Promise<Places> {
  const dataDir = aFolder();
  const workspace = join(dataDir, 'workspace');
  await mkdir(workspace);
  return { dataDir, workspace };
}

/** Writes a skill's files into a folder; returns its path. */
export async function writeSkill(
  root: string,
  name = 'weather',
  files: Readonly<Record<string, string | Uint8Array>> = {
    'SKILL.md': weatherText.replace('name: weather', `name: ${name}`),
    'scripts/ask.sh': 'echo sunny\n',
  },
): Promise<string> {
  const folder = join(root, 'skills', name);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return folder;
}

/** Accepts every skill as it is now. */
export async function acceptAll(places: Places): Promise<void> {
  const path = skillLockPath(places.dataDir);
  const accepted = await readSkillLock(path);
  const found = await findSkills(places, accepted);
  const entries = found.flatMap((one) =>
    one.state === 'new' || one.state === 'changed'
      ? [[one.key, { digest: one.skill.digest, acceptedAt: '2026-11-28T00:00:00Z', files: one.files }]]
      : [],
  );
  await writeSkillLock(path, { ...accepted, ...Object.fromEntries(entries) });
}

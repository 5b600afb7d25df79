/** Finds the skills of an agent, and says of each whether it is on: nothing is until its owner has accepted it. */
import { lstat, opendir } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';
import type { Skill } from '#contracts/skill.ts';
import { parseSkillFile } from './skill-file.ts';
import { fileDigest, readSkillFolder, type SkillFolder } from './skill-folder.ts';
import type { AcceptedSkill, AcceptedSkills } from './skill-lock.ts';

/** Most skills of one folder; the prompt lists each of them in every request. */
export const maxSkills = 50;

/** Where an agent's skills are, from the one that counts most. */
export type SkillPlaces = { readonly dataDir: string; readonly workspace: string };

/** A folder that is a skill, or should be one. `key` names it in the lock file. */
export type FoundSkill = { readonly folder: string; readonly key: string } & (
  | { readonly state: 'on'; readonly skill: Skill; readonly warning?: string }
  /** Waits for being accepted; `changes`: what is different from what was accepted before. */
  | {
      readonly state: 'new' | 'changed';
      readonly skill: Skill;
      readonly files: Readonly<Record<string, string>>;
      readonly changes: readonly string[];
      readonly warning?: string;
    }
  /** `problem`: a sentence that says what to do. */
  | { readonly state: 'refused'; readonly problem: string }
);

/** Returns the folders with skills: the owner's, and the one in the workspace. */
export function skillRoots({ dataDir, workspace }: SkillPlaces): readonly string[] {
  return [join(dataDir, 'skills'), join(workspace, 'skills')];
}

/** Returns a skill's name in the lock file. */
export function lockKey(dataDir: string, folder: string): string {
  const way = relative(dataDir, folder);
  return way.startsWith('..') || isAbsolute(way) ? folder : way;
}

/** Lists the folders of skills by name, up to `maxSkills` of each root; `left` are those beyond. */
export async function listSkillFolders(
  roots: readonly string[],
): Promise<{ readonly folders: readonly string[]; readonly left: readonly string[] }> {
  const folders: string[] = [];
  const left: string[] = [];
  for (const root of roots) {
    const names = await namesIn(root);
    folders.push(...names.slice(0, maxSkills).map((name) => join(root, name)));
    left.push(...names.slice(maxSkills).map((name) => join(root, name)));
  }
  return { folders, left };
}

/** Names beyond this aren't even sorted: somebody has filled the folder. */
const maxNames = 1_000;

async function namesIn(root: string): Promise<readonly string[]> {
  try {
    // A link in place of the folder would lead elsewhere.
    if (!(await lstat(root)).isDirectory()) return [];
    const names: string[] = [];
    for await (const { name } of await opendir(root)) {
      if (name.startsWith('.')) continue;
      names.push(name);
      if (names.length >= maxNames) break;
    }
    return names.toSorted((a, b) => (a < b ? -1 : 1));
  } catch {
    return [];
  }
}

/** Reads all skills of an agent, by folder. */
export async function findSkills(
  places: SkillPlaces,
  accepted: AcceptedSkills,
): Promise<readonly FoundSkill[]> {
  const { folders, left } = await listSkillFolders(skillRoots(places));
  const keyOf = (folder: string) => lockKey(places.dataDir, folder);
  const found: FoundSkill[] = [];
  const taken = new Map<string, string>();
  for (const folder of folders) {
    const one = await findOne({ folder, key: keyOf(folder) }, accepted);
    const other = one.state === 'refused' ? undefined : taken.get(one.skill.name);
    if (one.state !== 'refused' && other === undefined) taken.set(one.skill.name, folder);
    found.push(
      other === undefined
        ? one
        : refuse(one, `${other} has the same name and comes first; rename one of them`),
    );
  }
  const tooMany = `its folder has more than ${maxSkills} skills; remove some`;
  return [...found, ...left.map((folder) => refuse({ folder, key: keyOf(folder) }, tooMany))];
}

type Place = { readonly folder: string; readonly key: string };

async function findOne(place: Place, accepted: AcceptedSkills): Promise<FoundSkill> {
  const { folder, key } = place;
  try {
    const read = await readSkillFolder(folder);
    if (read.kind === 'refused') return refuse(place, read.problem);
    const name = folder.slice(folder.lastIndexOf('/') + 1);
    const parsed = await parseSkillFile(read.files.get('SKILL.md')?.bytes ?? Buffer.alloc(0), name);
    if (parsed.kind === 'refused') return refuse(place, parsed.problem);
    const skill = { name, description: parsed.description, folder, digest: read.digest };
    const facts = { folder, key, skill, ...(parsed.warning !== undefined && { warning: parsed.warning }) };
    const before = Object.hasOwn(accepted, key) ? accepted[key] : undefined;
    if (before?.digest === read.digest) return { ...facts, state: 'on' };
    const files = filesOf(read);
    return { ...facts, state: before ? 'changed' : 'new', files, changes: changesOf(files, before) };
  } catch (error) {
    return refuse(place, `it can't be read (${error instanceof Error ? error.message : String(error)})`);
  }
}

function refuse({ folder, key }: Place, problem: string): FoundSkill {
  return { folder, key, state: 'refused', problem };
}

function filesOf({ files }: SkillFolder): Readonly<Record<string, string>> {
  return Object.fromEntries([...files].map(([path, file]) => [path, fileDigest(file)]));
}

/** Lists what is different, one line each. */
function changesOf(
  files: Readonly<Record<string, string>>,
  before: AcceptedSkill | undefined,
): readonly string[] {
  const [old, now] = [new Map(Object.entries(before?.files ?? {})), new Map(Object.entries(files))];
  return [...new Set([...now.keys(), ...old.keys()])].toSorted().flatMap((name) => {
    const [was, is] = [old.get(name), now.get(name)];
    if (was === is) return [];
    const mark = is?.endsWith('x') === true ? ' (executable)' : '';
    return [`${was === undefined ? 'added' : is === undefined ? 'removed' : 'changed'} ${name}${mark}`];
  });
}

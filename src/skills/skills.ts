/** The skills of one agent while Parley runs: what its runs are told, and what they may read. */
import { createHash } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Skill, SkillFile, SkillReader, SkillSnapshot } from '#contracts/skill.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { Config } from '../config/config.ts';
import { revealAll } from '../config/secret.ts';
import { workspaceDisks } from '../processes/disk-gate.ts';
import {
  type FoundSkill,
  findSkills,
  listSkillFolders,
  lockKey,
  type SkillPlaces,
  skillRoots,
} from './find-skills.ts';
import { listSkillFolder, readSkillFolder } from './skill-folder.ts';
import { readSkillLock, skillLockPath } from './skill-lock.ts';

/** The accepted skills of one agent. */
export interface Skills {
  /**
   * Returns those that are on. The folders are looked at once a second at most, and read only after a change: until
   * then the result is the same object. If a disk doesn't respond, the result is the last one.
   */
  current(): Promise<SkillSnapshot>;
}

export type SkillsDeps = SkillPlaces & {
  readonly log: Log;
  readonly disks?: DiskCalls;
  /** The only skills that this agent may have; absent: all. */
  readonly allow?: readonly string[];
  /** Monotonic, ms. */
  now?(): number;
};

/** How long a look at the folders counts, ms. */
const trustMs = 1_000;

/** Creates the skills of one agent; reads nothing yet. */
export function createSkills(deps: SkillsDeps): Skills {
  const { disks = workspaceDisks, workspace, now = () => performance.now() } = deps;
  let known: { readonly version: string; readonly snapshot: SkillSnapshot } = { version: '', snapshot: none };
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;
  const look = async () => {
    try {
      const version = await disks.run(workspace, () => versionOf(deps));
      if (version === known.version) return;
      const snapshot = version === '' ? none : await disks.run(workspace, () => load(deps));
      known = { version, snapshot: snapshot.id === known.snapshot.id ? known.snapshot : snapshot };
    } catch (error) {
      // The disk doesn't respond, or a folder is just being changed.
      deps.log.warn({ workspace, problem: messageOf(error) }, 'skills.not-read');
    } finally {
      lookedAt = now();
      looking = undefined;
    }
  };
  return {
    current: async () => {
      if (now() - lookedAt >= trustMs) looking ??= look();
      await looking;
      return known.snapshot;
    },
  };
}

/** Describes the state of all files that matter; empty without any skill. */
async function versionOf(places: SkillPlaces): Promise<string> {
  const { folders } = await listSkillFolders(skillRoots(places));
  if (folders.length === 0) return '';
  const version = createHash('sha256');
  const lock = await lstat(skillLockPath(places.dataDir)).catch(() => undefined);
  version.update(`${lock?.ino}:${lock?.size}:${lock?.mtimeMs}\n`);
  for (const folder of folders) {
    const listing = await listSkillFolder(folder).catch(() => undefined);
    version.update(`${folder}\0${listing?.kind}\0`);
    if (listing?.kind !== 'listed') continue;
    for (const [path, { ino, size, mode, mtimeMs, ctimeMs }] of listing.files)
      version.update(`${path}\0${ino}:${size}:${mode}:${mtimeMs}:${ctimeMs}\0`);
  }
  return version.digest('hex');
}

async function load(deps: SkillsDeps): Promise<SkillSnapshot> {
  const accepted = await readSkillLock(skillLockPath(deps.dataDir)).catch((error: unknown) => {
    if (!hasCode(error, 'config_invalid')) throw error;
    deps.log.error({ problem: messageOf(error) }, 'skills.not-accepted');
    return {};
  });
  const found = await findSkills(deps, accepted);
  for (const one of found) tell(one, deps.log);
  const isAllowed = ({ name }: Skill) => deps.allow?.includes(name) ?? true;
  return snapshotOf(found.flatMap((one) => (one.state === 'on' && isAllowed(one.skill) ? [one.skill] : [])));
}

function tell(one: FoundSkill, log: Log): void {
  const { folder, state } = one;
  if (state === 'refused') log.warn({ folder, problem: one.problem }, 'skill.refused');
  else if (state !== 'on') log.warn({ folder, state }, 'skill.not-accepted');
}

function snapshotOf(found: readonly Skill[]): SkillSnapshot {
  const skills = found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const id = createHash('sha256').update(JSON.stringify(skills)).digest('hex').slice(0, 32);
  return { id, skills };
}

const none: SkillSnapshot = snapshotOf([]);

/** Creates the reader of all agents' skills. */
export function createSkillReader({ dataDir, skills }: Pick<Config, 'dataDir' | 'skills'>): SkillReader {
  const variables = new Map(Object.entries(skills.environment));
  return {
    read: (skill) => readAcceptedSkill(skill, { dataDir, disks: workspaceDisks }),
    environmentOf: (name) => revealAll(variables.get(name) ?? {}),
  };
}

/**
 * Reads a skill's files for use, and compares them and the lock file with what the run was given. Throws ParleyError
 * `tool_failed` if the skill has changed or isn't accepted any more.
 */
export async function readAcceptedSkill(
  { name, folder, digest }: Skill,
  { dataDir, disks }: { readonly dataDir: string; readonly disks: DiskCalls },
): Promise<ReadonlyMap<string, SkillFile>> {
  const off = (why: string) =>
    new ParleyError(
      'tool_failed',
      `The skill ${name} is off: ${why}. Only the owner can turn it on again, with parley skills check.`,
    );
  const accepted = await readSkillLock(skillLockPath(dataDir)).catch(() => ({}));
  if (new Map(Object.entries(accepted)).get(lockKey(dataDir, folder))?.digest !== digest)
    throw off('what this conversation was told of it is no longer what the owner has accepted');
  const read = await disks.run(folder, () => readSkillFolder(folder)).catch(() => undefined);
  if (read?.kind !== 'read') throw off(read === undefined ? "it can't be read" : read.problem);
  if (read.digest !== digest) throw off('its files have changed since the owner accepted them');
  return read.files;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

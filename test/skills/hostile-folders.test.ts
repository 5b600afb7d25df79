import { execFileSync } from 'node:child_process';
import { chmod, link, mkdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Skill } from '#contracts/skill.ts';
import { findSkills, maxSkills } from '../../src/skills/find-skills.ts';
import { maxSkillBytes, maxSkillFiles } from '../../src/skills/skill-folder.ts';
import { readSkillLock, skillLockPath } from '../../src/skills/skill-lock.ts';
import { createSkills, readAcceptedSkill } from '../../src/skills/skills.ts';
import { aFolder } from '../support/own-folder.ts';
import { silentLog } from '../support/silent-log.ts';
import { acceptAll, type Places, somePlaces, weatherText, writeSkill } from './some-skills.ts';

/** What somebody does to a skill's folder. */
type Deed = (folder: string, places: Places) => unknown;

const secret = 'the secret of another folder';
const skillFile = 'SKILL.md';
const script = join('scripts', 'ask.sh');

async function aSecret(): Promise<string> {
  const path = join(aFolder(), 'secret');
  await writeFile(path, secret);
  return path;
}

/** Folders that never become a skill, whatever the owner accepts. */
const never: readonly (readonly [what: string, deed: Deed])[] = [
  ['SKILL.md is a symbolic link', async (f) => relink(join(f, skillFile), await aSecret())],
  ['SKILL.md links to a skill', async (f) => relink(join(f, skillFile), join(f, script))],
  ['SKILL.md is a broken link', (f) => relink(join(f, skillFile), '/nowhere')],
  ['SKILL.md is a hard link', async (f) => rehard(join(f, skillFile), await aSecret())],
  ['a script is a symbolic link', async (f) => relink(join(f, script), await aSecret())],
  ['a script is a hard link', async (f) => rehard(join(f, script), await aSecret())],
  ['a folder is a symbolic link', async (f) => relink(join(f, 'scripts'), aFolder())],
  ['a folder links to itself', (f) => symlink('.', join(f, 'again'))],
  ['the folder is a symbolic link', (f) => linkTo(f)],
  ['SKILL.md is a folder', (f) => remake(join(f, skillFile), (path) => mkdir(path))],
  ['SKILL.md is a pipe', (f) => remake(join(f, skillFile), (path) => execFileSync('mkfifo', [path]))],
  ['a script is a pipe', (f) => remake(join(f, script), (path) => execFileSync('mkfifo', [path]))],
  ['it has a socket', listenIn],
  ['SKILL.md is missing', (f) => rm(join(f, skillFile))],
  ['SKILL.md is called otherwise', (f) => rename(join(f, skillFile), join(f, 'skill.md'))],
  ['SKILL.md is empty', (f) => truncate(join(f, skillFile), 0)],
  ['SKILL.md is binary', (f) => writeFile(join(f, skillFile), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0xff]))],
  ['SKILL.md is huge', (f) => truncate(join(f, skillFile), 10_000_000)],
  ['a file is huge and sparse', (f) => truncate(join(f, script), 2 ** 40)],
  ['all files together are too large', (f) => writeFile(join(f, 'data'), Buffer.alloc(maxSkillBytes))],
  ['it has too many files', (f) => fill(f, maxSkillFiles)],
  ['a sub-folder has too many folders', (f) => fill(join(f, 'scripts'), maxSkillFiles, 'folders')],
  [
    'its folders have too many files together',
    async (f) => {
      await fill(f, maxSkillFiles - 10);
      await fill(join(f, 'scripts'), 20);
    },
  ],
  ['it is deep', (f) => mkdir(join(f, ...Array(30).fill('d')), { recursive: true })],
  ['its name is not the folder’s', (f) => write(f, weatherText.replace('weather', 'whether'))],
  ['its name is a path', (f) => write(f, weatherText.replace('name: weather', 'name: ../../weather'))],
  ['its folder has capitals', (f) => rename(f, f.replace('weather', 'Weather'))],
  ['its folder’s name has a line break', (f) => rename(f, f.replace('weather', 'wea\nther'))],
  ['a file’s name has a line break', (f) => writeFile(join(f, 'a\nchanged b'), '')],
  ['a file’s name reverses text', (f) => writeFile(join(f, 'a\u202egpj.sh'), '')],
  ['a file’s name is no UTF-8', (f) => writeFile(Buffer.concat([Buffer.from(`${f}/`), Buffer.of(0xfe)]), '')],
  ['its front matter expands', (f) => write(f, bomb)],
  ['its front matter is no YAML', (f) => write(f, '---\nname: [weather\n---\n')],
  ['it isn’t a folder but a file', (f) => remake(f, (path) => writeFile(path, weatherText))],
  ['the skills’ folder is a link', (f) => linkTo(dirname(f))],
];

/** Changes of a skill that was on: it is off until its owner accepts them. */
const changes: readonly (readonly [what: string, deed: Deed])[] = [
  ['SKILL.md has one more byte', (f) => write(f, `${weatherText} `)],
  ['SKILL.md has other bytes of the same length', (f) => write(f, weatherText.replace('place', 'plane'))],
  ['a script has changed', (f) => writeFile(join(f, script), 'echo rainy\n')],
  ['a script has become executable', (f) => chmod(join(f, script), 0o755)],
  ['a file is new', (f) => writeFile(join(f, 'more.md'), 'more')],
  ['an empty file is new', (f) => writeFile(join(f, 'scripts', '__init__.py'), '')],
  ['a hidden file is new', (f) => writeFile(join(f, '.hidden'), '')],
  ['a file is gone', (f) => rm(join(f, script))],
  ['a file has another name', (f) => rename(join(f, script), join(f, 'scripts', 'aks.sh'))],
  ['two files have swapped', swap],
  ['a file has become a link to the same text', linkToCopy],
];

const bomb = `---
name: weather
description: x
a: &a [y,y,y,y,y,y,y,y,y,y]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]
---
`;

const stateIn = async (places: Places) =>
  findSkills(places, await readSkillLock(skillLockPath(places.dataDir)));
const currentIn = (places: Places) => createSkills({ ...places, log: silentLog }).current();

describe.each(['workspace', 'dataDir'] as const)('hostile folders in the %s', (root) => {
  it.each(never)('makes no skill of a folder, even if its owner accepts everything: %s', async (_, deed) => {
    const places = await somePlaces();
    const folder = await writeSkill(places[root]);
    await deed(folder, places);
    await acceptAll(places);
    const found = await stateIn(places);
    expect(found.map(({ state }) => state).filter((state) => state !== 'refused')).toEqual([]);
    expect((await currentIn(places)).skills).toEqual([]);
    expect(JSON.stringify(found)).not.toContain(secret);
  });

  it.each(changes)('turns a skill off when it changes, also for a run that knows it: %s', async (_, deed) => {
    const places = await somePlaces();
    const folder = await writeSkill(places[root]);
    await acceptAll(places);
    const [skill] = (await currentIn(places)).skills;
    if (skill === undefined) throw new Error('the skill was not on');
    const read = (one: Skill) => readAcceptedSkill(one, { ...places, disks: direct });
    expect((await read(skill)).size).toBe(2);
    await deed(folder, places);
    expect((await currentIn(places)).skills).toEqual([]);
    await expect(read(skill)).rejects.toThrow(/The skill weather is off: .*Only the owner can turn it on/);
  });
});

it('turns on the first of two skills with the same name, the owner’s before the workspace’s', async () => {
  const places = await somePlaces();
  await writeSkill(places.workspace);
  await acceptAll(places);
  const own = await writeSkill(places.dataDir);
  expect((await stateIn(places)).map(({ state }) => state)).toEqual(['new', 'refused']);
  await acceptAll(places);
  expect((await currentIn(places)).skills.map(({ folder }) => folder)).toEqual([own]);
});

it('turns on at most fifty skills of one folder', async () => {
  const places = await somePlaces();
  for (let n = 0; n < maxSkills + 2; n += 1) await writeSkill(places.workspace, `skill-${100 + n}`);
  await acceptAll(places);
  expect((await currentIn(places)).skills).toHaveLength(maxSkills);
  const refused = (await stateIn(places)).filter(({ state }) => state === 'refused');
  expect(refused.map(({ key }) => key)).toEqual(['workspace/skills/skill-150', 'workspace/skills/skill-151']);
});

const direct = {
  run: <T>(_: string, call: () => Promise<T>) => call(),
  finish: (_: string, call: () => Promise<void>) => call(),
};

const write = (folder: string, text: string) => writeFile(join(folder, skillFile), text);

async function remake(path: string, make: (path: string) => unknown): Promise<void> {
  await rm(path, { recursive: true });
  await make(path);
}

const relink = (path: string, target: string) => remake(path, (at) => symlink(target, at));
const rehard = (path: string, target: string) => remake(path, (at) => link(target, at));

async function fill(folder: string, count: number, kind: 'files' | 'folders' = 'files'): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const path = join(folder, `f${n}`);
    await (kind === 'files' ? writeFile(path, '') : mkdir(path));
  }
}

async function listenIn(folder: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(folder, 's'), resolve));
  // A server that closes removes its socket.
  await rename(join(folder, 's'), join(folder, 'socket'));
  await new Promise((resolve) => server.close(resolve));
}

async function linkTo(folder: string): Promise<void> {
  await rename(folder, `${folder}-real`);
  await symlink(`${folder}-real`, folder);
}

async function swap(folder: string): Promise<void> {
  const [a, b] = [join(folder, skillFile), join(folder, script)];
  await rename(a, `${a}.tmp`);
  await rename(b, a);
  await rename(`${a}.tmp`, b);
}

async function linkToCopy(folder: string): Promise<void> {
  const copy = join(aFolder(), 'copy');
  await rename(join(folder, script), copy);
  await symlink(copy, join(folder, script));
}

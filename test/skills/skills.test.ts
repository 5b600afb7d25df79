import { chmod, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ParleyError } from '#contracts/errors.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import { readSkillLock, skillLockPath, writeSkillLock } from '../../src/skills/skill-lock.ts';
import { createSkills, readAcceptedSkill } from '../../src/skills/skills.ts';
import { recordingLog, silentLog } from '../support/silent-log.ts';
import { acceptAll, somePlaces, weatherText, writeSkill } from './some-skills.ts';

/** A disk that counts calls, and can go away. */
function aDisk() {
  const state = { calls: 0, isGone: false };
  const disks: DiskCalls = {
    run: async (_, call) => {
      state.calls += 1;
      if (state.isGone) throw new ParleyError('tool_failed', 'no answer');
      return call();
    },
    finish: (_, call) => call(),
  };
  return { state, disks };
}

async function aWorld(options: { readonly allow?: readonly string[] } = {}) {
  const places = await somePlaces();
  const { state, disks } = aDisk();
  let now = 0;
  const skills = createSkills({ ...places, ...options, disks, log: silentLog, now: () => now });
  const later = () => {
    now += 1_000;
    return skills.current();
  };
  return { places, state, skills, later };
}

describe('the skills of an agent', () => {
  it('turns no skill on before its owner has accepted it', async () => {
    const { places, later } = await aWorld();
    const folder = await writeSkill(places.workspace);
    expect((await later()).skills).toEqual([]);
    await acceptAll(places);
    expect((await later()).skills).toEqual([
      {
        name: 'weather',
        description: 'Tells the weather of a place. Use when someone asks for it.',
        folder,
        digest: expect.stringMatching(/^sha256-[0-9a-f]{64}$/),
      },
    ]);
  });

  it('returns the same snapshot until a file changes, and looks at most once a second', async () => {
    const { places, state, skills, later } = await aWorld();
    const folder = await writeSkill(places.workspace);
    await acceptAll(places);
    const first = await later();
    const { calls } = state;
    await Promise.all([skills.current(), skills.current()]);
    expect(state.calls).toBe(calls);
    expect(await later()).toBe(first);
    expect(state.calls).toBe(calls + 1);
    await writeFile(join(folder, 'scripts', 'ask.sh'), 'echo rainy\n');
    const changed = await later();
    expect(changed.skills).toEqual([]);
    expect(changed.id).not.toBe(first.id);
    await acceptAll(places);
    const accepted = await later();
    expect(accepted.skills).toHaveLength(1);
    expect(accepted.id).not.toBe(first.id);
    await writeFile(join(folder, 'scripts', 'ask.sh'), 'echo sunny\n');
    await acceptAll(places);
    expect((await later()).id).toBe(first.id);
  });

  it('lists skills by name, wherever they are and in whatever order they came', async () => {
    const one = await aWorld();
    for (const [root, name] of [
      ['workspace', 'c'],
      ['dataDir', 'b'],
      ['workspace', 'a'],
    ] as const)
      await writeSkill(one.places[root], name);
    await acceptAll(one.places);
    expect((await one.later()).skills.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });

  it('gives an agent only the skills on its list', async () => {
    const { places, later } = await aWorld({ allow: ['b', 'z'] });
    for (const name of ['a', 'b']) await writeSkill(places.dataDir, name);
    await acceptAll(places);
    expect((await later()).skills.map(({ name }) => name)).toEqual(['b']);
  });

  it('keeps the last snapshot while a disk does not respond', async () => {
    const { places, state, later } = await aWorld();
    await writeSkill(places.workspace);
    await acceptAll(places);
    const first = await later();
    state.isGone = true;
    expect(await later()).toBe(first);
  });

  it('turns everything off while the lock file is not valid, and says so', async () => {
    const places = await somePlaces();
    await writeSkill(places.workspace);
    await acceptAll(places);
    const { log, lines } = recordingLog();
    for (const text of ['', '{}', '{"version":2,"skills":{}}', '{"version":1,"skills":{"a":{}}}', '[]']) {
      await writeFile(skillLockPath(places.dataDir), text);
      expect((await createSkills({ ...places, log }).current()).skills).toEqual([]);
      expect(lines.splice(0).join()).toContain('skills.json');
    }
  });

  it('keeps the lock file in the data folder, readable only by its owner', async () => {
    const places = await somePlaces();
    await writeSkill(places.workspace);
    await acceptAll(places);
    const path = skillLockPath(places.dataDir);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(Object.keys(await readSkillLock(path))).toEqual(['workspace/skills/weather']);
  });

  it('reads nothing of a skill whose acceptance has been withdrawn', async () => {
    const { places, later } = await aWorld();
    await writeSkill(places.workspace);
    await acceptAll(places);
    const [skill] = (await later()).skills;
    if (skill === undefined) throw new Error('not on');
    await writeSkillLock(skillLockPath(places.dataDir), {});
    await expect(readAcceptedSkill(skill, { ...places, disks: aDisk().disks })).rejects.toThrow(/is off/);
  });

  it('reads nothing of a skill that its owner has accepted in another version since', async () => {
    const { places, later } = await aWorld();
    const folder = await writeSkill(places.workspace);
    await acceptAll(places);
    const [skill] = (await later()).skills;
    if (skill === undefined) throw new Error('not on');
    await writeFile(join(folder, 'SKILL.md'), `${weatherText}More.\n`);
    await acceptAll(places);
    await expect(readAcceptedSkill(skill, { ...places, disks: aDisk().disks })).rejects.toThrow(/is off/);
  });

  it('reads nothing that changes between its listing and its reading', async () => {
    const places = await somePlaces();
    const folder = await writeSkill(places.workspace);
    await acceptAll(places);
    const [skill] = (await createSkills({ ...places, log: silentLog }).current()).skills;
    if (skill === undefined) throw new Error('not on');
    let isOver = false;
    const changing = (async () => {
      for (let n = 0; !isOver; n += 1)
        await writeFile(join(folder, 'scripts', 'ask.sh'), n % 2 === 0 ? 'echo stormy' : 'echo sunny\n');
    })();
    for (let n = 0; n < 200; n += 1) {
      const files = await readAcceptedSkill(skill, { ...places, disks: aDisk().disks }).catch(
        () => undefined,
      );
      if (files !== undefined) expect(files.get('scripts/ask.sh')?.bytes.toString()).toBe('echo sunny\n');
    }
    isOver = true;
    await changing;
  });

  it.runIf(process.getuid?.() !== 0)('leaves out a skill that it may not read', async () => {
    const { places, later } = await aWorld();
    const folder = await writeSkill(places.workspace);
    await acceptAll(places);
    await chmod(folder, 0);
    expect((await later()).skills).toEqual([]);
    await chmod(folder, 0o700);
  });

  it('has no skills without a folder, nor after its removal', async () => {
    const { places, state, later } = await aWorld();
    const first = await later();
    expect(first.skills).toEqual([]);
    expect(state.calls).toBe(1);
    const folder = await writeSkill(places.workspace);
    await acceptAll(places);
    expect((await later()).skills).toHaveLength(1);
    await rm(folder, { recursive: true });
    expect((await later()).id).toBe(first.id);
  });
});

import { readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SkillReader } from '#contracts/skill.ts';
import { Secret } from '../../../src/config/secret.ts';
import { createSkillReader, createSkills } from '../../../src/skills/skills.ts';
import { acceptAll, somePlaces, weatherText, writeSkill } from '../../skills/some-skills.ts';
import { aFolder } from '../../support/own-folder.ts';
import { silentLog } from '../../support/silent-log.ts';
import { aShell } from './a-shell.ts';

const script = '#!/bin/bash\necho "sunny in $1, key $WEATHER_KEY"\n';

async function aShellWithSkill(config: object = {}) {
  vi.stubEnv('TMPDIR', aFolder());
  onTestFinished(() => void vi.unstubAllEnvs());
  const places = await somePlaces();
  const folder = await writeSkill(places.dataDir, 'weather', { 'SKILL.md': weatherText, 'ask.sh': script });
  await acceptAll(places);
  const snapshot = await createSkills({ ...places, log: silentLog }).current();
  const environment = { weather: { WEATHER_KEY: new Secret('sun-and-rain') } };
  const reader: SkillReader = createSkillReader({ ...places, skills: { environment } });
  const shell = await aShell({ config, skills: { snapshot, reader } });
  onTestFinished(shell.remove);
  const use = (command: string, more: object = {}) =>
    shell.call('bash', { command, skill: 'weather', ...more });
  return { folder, shell, use };
}

const copies = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('parley-skill-'));

describe.each([
  ['in the sandbox', {}],
  ['without a sandbox', { unsandboxed: true }],
])('the programs of a skill %s', (_, config) => {
  it('run with the files and variables of their skill, which other commands do not get', async () => {
    const { shell, use } = await aShellWithSkill(config);
    expect(await use('bash "$SKILL_DIR/ask.sh" Rome')).toContain('sunny in Rome, key sun-and-rain');
    const other = await shell.bash('echo "[$SKILL_DIR$WEATHER_KEY]"; ls /skills 2>&1');
    expect(other).toMatch(/\[\][\s\S]*No such file/);
    await expect.poll(copies).toEqual([]);
  });

  it('run in the background, too, and their copy is removed with them', async () => {
    const { shell, use } = await aShellWithSkill(config);
    const [, id] =
      /as (\w+)/.exec(await use('bash "$SKILL_DIR/ask.sh" Oslo; sleep 60', { background: true })) ?? [];
    await expect.poll(() => shell.call('bash_jobs', { action: 'read', id })).toContain('sunny in Oslo');
    await shell.call('bash_jobs', { action: 'end', id });
    await expect.poll(copies).toEqual([]);
  });

  it('run only as their owner has accepted them', async () => {
    const { folder, use } = await aShellWithSkill(config);
    await writeFile(join(folder, 'ask.sh'), 'env > leaked');
    await expect(use('bash "$SKILL_DIR/ask.sh" Rome')).rejects.toThrow('have changed since');
    await expect(use('true', { skill: 'whether' })).rejects.toThrow('There is no skill whether');
  });

  it('show the approver their digest and the names of their variables, never the values', async () => {
    const { shell } = await aShellWithSkill(config);
    const shown = shell.describe({ command: 'true', skill: 'weather' });
    expect(shown).toMatch(
      /with the files of the skill weather \(sha256-[0-9a-f]{64}\), with WEATHER_KEY\n\ntrue$/,
    );
    expect(shown).not.toContain('sun-and-rain');
    expect(shell.describe({ command: 'true' })).not.toContain('skill');
  });
});

it('lets a command change neither the files of its skill nor those of the owner', async () => {
  const { folder, use } = await aShellWithSkill();
  const text = await use(
    'echo x >> "$SKILL_DIR/ask.sh"; touch "$SKILL_DIR/new"; chmod +x "$SKILL_DIR/ask.sh"; true',
  );
  expect(text.match(/Read-only file system|Permission denied/g)).toHaveLength(3);
  expect(await use('bash "$SKILL_DIR/ask.sh" Rome')).toContain('sunny in Rome');
  expect((await readdir(folder)).sort()).toEqual(['SKILL.md', 'ask.sh']);
});

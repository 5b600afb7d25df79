import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { skillsForDoctor } from '../../src/cli/skills.ts';
import type { Config } from '../../src/config/config.ts';
import { writeSkill } from '../skills/some-skills.ts';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

it('shows what is new or changed in a skill, and accepts exactly what was shown', {
  timeout: 120_000,
}, async () => {
  const dataDir = aFolder();
  await mkdir(join(dataDir, 'workspace'));
  const env = { PARLEY_DATA_DIR: dataDir };
  const run = (...args: string[]) => runParley(['skills', ...args], env);
  expect((await run('list')).stdout).toContain('There are no skills');

  const folder = await writeSkill(join(dataDir, 'workspace'));
  await writeSkill(dataDir, 'broken', { 'SKILL.md': 'no front matter' });
  expect((await run('list')).stdout).toMatch(
    /refused .*skills\/broken .*must begin[\s\S]*new .*workspace\/skills\/weather/,
  );
  const shown = await run('check', 'weather');
  expect(shown.code).toBe(1);
  expect(shown.stdout).toContain('Tells the weather of a place.');
  expect(shown.stdout).toMatch(/added SKILL\.md\n +added scripts\/ask\.sh/);
  const [, digest = ''] = /--accept (\w+)/.exec(shown.stdout) ?? [];

  await writeFile(join(folder, 'scripts', 'ask.sh'), 'echo rainy\n');
  expect((await run('check', 'weather', '--accept', digest)).stderr).toContain('may have changed again');
  await writeFile(join(folder, 'scripts', 'ask.sh'), 'echo sunny\n');
  expect((await run('check', '--accept', digest)).stdout).toContain('workspace/skills/weather is on');
  expect((await run('check', 'weather')).stdout).toContain('Every skill is as you have accepted it.');

  await writeFile(join(folder, 'scripts', 'ask.sh'), 'echo rainy\n');
  const changed = JSON.parse((await run('check', 'weather', '--json')).stdout);
  expect(changed).toMatchObject([{ name: 'weather', state: 'changed', changes: ['changed scripts/ask.sh'] }]);
  expect((await run('check', 'whether')).stderr).toContain('There is no skill whether');
  expect((await run('check', '--accept', '')).stderr).toContain('No new or changed skill');
});

it('names the skills that are off in doctor, and says what to do', async () => {
  const dataDir = aFolder();
  const workspace = join(dataDir, 'workspace');
  const check = () => skillsForDoctor({ dataDir, agents: [{ workspace }] } as unknown as Config);
  expect(await check()).toEqual([]);
  await writeSkill(workspace);
  await writeSkill(dataDir, 'broken', { 'SKILL.md': 'no front matter' });
  const fix = expect.stringContaining('skills check');
  const detail = expect.stringMatching(/^off until you accept them: \S*weather\n\S*broken: .*must begin/);
  expect(await check()).toEqual([{ name: 'skills', result: 'warning', detail, fix }]);
  await writeFile(join(dataDir, 'skills.json'), '{');
  expect(await check()).toEqual([{ name: 'skills', result: 'failed', detail: expect.any(String), fix }]);
});

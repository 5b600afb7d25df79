import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { agentId, type RunId, type SessionId, type SessionKey } from '#contracts/ids.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { createSkillReader, createSkills } from '../../src/skills/skills.ts';
import { createSkillTool } from '../../src/tools/skill.ts';
import { acceptAll, somePlaces, weatherText, writeSkill } from '../skills/some-skills.ts';
import { silentLog } from '../support/silent-log.ts';

async function aSkillTool(files?: Readonly<Record<string, string | Uint8Array>>) {
  const places = await somePlaces();
  const folder = await writeSkill(places.workspace, 'weather', files);
  await acceptAll(places);
  const snapshot = await createSkills({ ...places, log: silentLog }).current();
  const reader = createSkillReader({ ...places, skills: { environment: {} } });
  const tool = createSkillTool(reader, snapshot);
  const run: ToolRun = {
    runId: 'run' as RunId,
    sessionId: 'session' as SessionId,
    sessionKey: 'key' as SessionKey,
    agentId: agentId('main'),
    authority: 'guest',
    workspace: places.workspace,
    epoch: 1,
  };
  const ctx = { callId: 'call', run, signal: new AbortController().signal, update: () => undefined };
  const use = async (input: unknown) => {
    const output = await tool.execute(tool.inputSchema.parse(input), ctx);
    return 'text' in output ? output.text : '';
  };
  return { folder, use };
}

it('reads the instructions of a skill and names its files', async () => {
  const { use } = await aSkillTool();
  const text = await use({ name: 'weather' });
  expect(text).toContain(weatherText);
  expect(text).toContain('Files of this skill: scripts/ask.sh.');
  expect(text).toContain('skill: "weather"');
});

it('reads a file of a skill, and nothing outside it', async () => {
  const { use } = await aSkillTool();
  expect(await use({ name: 'weather', file: './scripts/ask.sh' })).toBe('echo sunny\n');
  for (const file of [
    '../weather/SKILL.md',
    '/etc/passwd',
    'scripts',
    '',
    'scripts/../SKILL.md',
    '__proto__',
  ])
    await expect(use({ name: 'weather', file })).rejects.toThrow('The skill has no file');
  for (const name of ['../weather', 'weather/scripts', 'constructor', ''])
    await expect(use({ name })).rejects.toThrow('There is no skill');
});

it('refuses a file that has changed since the owner accepted it', async () => {
  const { folder, use } = await aSkillTool();
  await writeFile(join(folder, 'SKILL.md'), weatherText.replace('Run scripts', 'Rm scripts'));
  await expect(use({ name: 'weather' })).rejects.toThrow(
    'its files have changed since the owner accepted them',
  );
  await expect(use({ name: 'weather', file: 'scripts/ask.sh' })).rejects.toThrow('have changed');
});

it('refuses files that are no text or do not fit into a result', async () => {
  const { use } = await aSkillTool({
    'SKILL.md': weatherText,
    'logo.png': Buffer.of(0x89, 0xff),
    'all.md': 'x'.repeat(40_000),
  });
  await expect(use({ name: 'weather', file: 'logo.png' })).rejects.toThrow("isn't text");
  await expect(use({ name: 'weather', file: 'all.md' })).rejects.toThrow('40000 bytes');
});

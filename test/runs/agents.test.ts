import { rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ChildRole } from '#contracts/child.ts';
import { agentId } from '#contracts/ids.ts';
import type { AgentSettings } from '../../src/config/config.ts';
import { createAgents } from '../../src/runs/agents.ts';
import { aFolder } from '../support/own-folder.ts';
import { silentLog } from '../support/silent-log.ts';

it('builds a prompt once, and again only when a file or the kind of run has changed', async () => {
  const workspace = aFolder();
  const main = anAgent(workspace);
  const aLeaf: ChildRole = { depth: 1, profile: 'task', deniedTools: [] };
  const agents = createAgents(
    { agents: [main], defaultAgent: main.id, dataDir: aFolder() },
    { log: silentLog },
  );
  const said = { chatKind: 'dm', tools: [{ name: 'message' }] } as const;
  const ask = (scene: Parameters<typeof agents.promptFor>[1], role?: ChildRole) =>
    agents.promptFor({ agentId: main.id, ...(role && { role }) }, scene);
  await writeFile(join(workspace, 'SOUL.md'), 'I am kind.');
  await utimes(join(workspace, 'SOUL.md'), 1, 1);

  const first = await ask(said);
  expect(await ask(said)).toBe(first);
  expect(await ask({ ...said, chatKind: 'group' })).not.toEqual(first);
  expect(await ask({ ...said, tools: [] })).not.toEqual(first);
  expect(await ask(said, aLeaf)).not.toEqual(first);
  expect(await ask(said)).toBe(first);

  await writeFile(join(workspace, 'SOUL.md'), 'I am curt.');
  expect(JSON.stringify(await ask(said))).toContain('I am curt.');
  await rm(join(workspace, 'SOUL.md'));
  expect(JSON.stringify(await ask(said))).not.toContain('I am');
});

it('lists skills in the prompt with the same bytes until one changes, and only beside their tool', async () => {
  const agents = createAgents(
    { agents: [anAgent()], defaultAgent: agentId('main'), dataDir: aFolder() },
    { log: silentLog },
  );
  const skill = { name: 'weather', description: 'Tells the weather.', folder: '/x', digest: 'sha256-1' };
  const ask = (id: string, tool: string) =>
    agents.promptFor(
      { agentId: agentId('main'), skills: { id, skills: [skill] } },
      { chatKind: 'dm', tools: [{ name: tool }] },
    );
  const first = await ask('1', 'skill');
  expect(
    first
      .filter(({ isAboutTools }) => isAboutTools)
      .map(({ text }) => text)
      .join(),
  ).toContain('- weather: Tells the weather.');
  expect(await ask('1', 'skill')).toBe(first);
  expect(await ask('2', 'skill')).not.toBe(first);
  expect(JSON.stringify(await ask('2', 'skill'))).toBe(JSON.stringify(first));
  expect(JSON.stringify(await ask('1', 'message'))).not.toContain('weather');
});

it('gives a run with a prompt of its own Parley’s rules, but nothing of the agent’s files and profile', async () => {
  const workspace = aFolder();
  await writeFile(join(workspace, 'SOUL.md'), 'I am a pirate.');
  const settings = { ...anAgent(workspace), profile: 'You love the sea.' };
  const agents = createAgents(
    { agents: [settings], defaultAgent: agentId('main'), dataDir: aFolder() },
    { log: silentLog },
  );
  const scene = { chatKind: 'dm', tools: [] } as const;
  const run = { agentId: agentId('main') };
  const own = JSON.stringify(await agents.promptFor(run, { ...scene, prompt: 'Be brief.' }));
  const usual = JSON.stringify(await agents.promptFor(run, scene));
  expect(own).toContain('Be brief.');
  expect(own).not.toMatch(/pirate|sea/);
  expect(usual).toMatch(/sea/);
  expect(usual).toMatch(/pirate/);
  expect(usual).not.toContain('Be brief.');
  expect(own).toMatch(/data/);
});

function anAgent(workspace = aFolder()): AgentSettings {
  return {
    id: agentId('main'),
    name: 'Parley',
    workspace,
    reasoning: 'off',
    tools: { deny: [], rules: [] },
    subagents: {},
  };
}

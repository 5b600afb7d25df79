import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { type BootstrapName, bootstrapNames } from '../agent/bootstrap-files.ts';
import { loadConfig } from '../config/load-config.ts';
import type { CommandOutput } from './print.ts';

/** Creates the files that shape an agent, in its workspace. Existing files are kept. */
export async function createAgentFiles(asked?: string): Promise<CommandOutput> {
  const { agents, defaultAgent } = loadConfig();
  const agent = agents.find(({ id }) => id === (asked ?? defaultAgent));
  if (agent === undefined) {
    const known = agents.map(({ id }) => id).join(', ');
    throw new ParleyError('invalid_input', `“${asked}” isn't an agent. Use one of: ${known}.`);
  }
  await mkdir(agent.workspace, { recursive: true, mode: 0o700 });
  const { id, name: agentName, workspace } = agent;
  const files: { readonly name: string; readonly isNew: boolean }[] = [];
  for (const name of bootstrapNames)
    files.push({ name, isNew: await create(join(workspace, name), templates[name](agentName)) });
  const lines = [
    workspace,
    ...files.map(({ name, isNew }) => `  ${name.padEnd(12)} ${isNew ? 'created' : 'kept'}`),
    `Edit them as you like: ${agentName} reads them before each answer.`,
  ];
  return { result: { agent: id, workspace, files }, lines };
}

/** Returns false when something already exists at the path, whatever it is. */
async function create(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** They become part of the prompt unchanged, so each says something useful in a few words. */
const templates: Readonly<Record<BootstrapName, (agent: string) => string>> = {
  'AGENTS.md': () => `# How you work

- Do what is asked, then stop. If something is unclear, ask one question.
- Say what you did and what you did not do. Never claim what you have not checked.
- Ask before you delete or overwrite a file.
`,
  'SOUL.md': () => `# Your manner

Friendly, calm and brief. Plain words, no flattery. Say so when you don't know.
`,
  'TOOLS.md': () => `# Notes on your tools

Files live in this folder. Look before you write.
`,
  'IDENTITY.md': (agent) => `# Who you are

Your name is ${agent}.
`,
  'USER.md': () => `# Whom you work for

(Name, languages, time zone, and what to know about them.)
`,
  'MEMORY.md': () => `# What to remember

(Facts that should outlast a conversation, one line each.)
`,
};

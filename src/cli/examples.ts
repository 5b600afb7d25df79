/** Examples that the help of each command ends with. */
import type { Command } from 'commander';
import { parleyCommand } from '#channel-kit/own-commands.ts';

/** By the names of a command, what to type after `parley`. A command that only has others shows theirs. */
const examples: Readonly<Record<string, readonly string[]>> = {
  start: ['start', 'start --role worker'],
  acp: ['acp', 'acp --agent main'],
  chat: ['chat'],
  follow: ['follow', 'follow 3f2a9c1e', 'follow main:telegram:telegram:dm:123 --json'],
  status: ['status', 'status --json'],
  why: ['why 45', 'why telegram:-100123/45 --text', 'why telegram:123'],
  onboard: ['onboard'],
  signin: ['signin'],
  doctor: ['doctor', 'doctor --fix'],
  agent: [
    'agent --message "What is due today?" --wait',
    'agent --agent research --key monday --message "Summarize the week"',
    'agent --message "What does it say?" --file letter.pdf --stream',
    'agent --agent research --message @task.md --wait',
  ],
  'agent init': ['agent init', 'agent init --agent research'],
  'agent steer': ['agent steer "Only look at this year" --session main:*:*:dm:owner'],
  'agent summarize': ['agent summarize', 'agent summarize --session main:*:*:dm:owner'],
  'agent busy': ['agent busy'],
  'agents list': ['agents list'],
  'agents bindings': ['agents bindings'],
  'agents unbind': ['agents unbind telegram/987654321/-1001234567890 5'],
  'outbox list': ['outbox list'],
  'outbox retry': ['outbox retry 3f2a9c1e-6b0d-4c7a-9e51-2d8f0a7b4c66:1'],
  'outbox drop': ['outbox drop 3f2a9c1e-6b0d-4c7a-9e51-2d8f0a7b4c66:1'],
  'queue list': ['queue list'],
  'queue cancel': ['queue cancel 3f2a9c1e'],
  'queue promote': ['queue promote 3f2a9c1e'],
  'queue edit': ['queue edit 3f2a9c1e "Which trains run on Sunday?"'],
  'sessions list': ['sessions list'],
  'sessions show': ['sessions show 3f2a9c1e'],
  'sessions export': ['sessions export 3f2a9c1e', 'sessions export 3f2a9c1e --json > conversation.json'],
  'subagents list': ['subagents list'],
  'subagents info': ['subagents info 3f2a9c1e'],
  'subagents log': ['subagents log 3f2a9c1e'],
  'subagents steer': ['subagents steer 3f2a9c1e "Only look at this year"'],
  'subagents stop': ['subagents stop 3f2a9c1e'],
  'tasks list': ['tasks list', 'tasks list --session main:*:*:dm:owner'],
  'tasks show': ['tasks show k3vq2'],
  'tasks stop': ['tasks stop k3vq2', 'tasks stop k3vq2 prices'],
  'tasks retry': ['tasks retry k3vq2'],
  'tasks steer': ['tasks steer k3vq2 prices "Only look at this year"'],
  'pair list': ['pair list'],
  'pair approve': ['pair approve ABCD2345', 'pair approve telegram:123456789'],
  'pair revoke': ['pair revoke telegram:123456789'],
  'approvals list': ['approvals list'],
  'approvals approve': ['approvals approve k3vq2abcde'],
  'approvals always': ['approvals always k3vq2abcde'],
  'approvals deny': ['approvals deny k3vq2abcde'],
  'approvals revoke': ['approvals revoke k3vq2abcde'],
  'hooks list': ['hooks list'],
  'hooks accept': ['hooks accept no-secrets.sh'],
  'tokens list': ['tokens list'],
  'tokens create': ['tokens create editor --scopes chat,read --days 90'],
  'tokens revoke': ['tokens revoke editor'],
  'link list': ['link list'],
  'link remove': ['link remove discord:80351110224678912'],
  'sign-ins list': ['sign-ins list'],
  'sign-ins end': ['sign-ins end 3f2a9c1e', 'sign-ins end --all'],
  'skills list': ['skills list'],
  'skills check': ['skills check', 'skills check weather --accept 3f2a9c1e6b0d'],
  'channels status': ['channels status'],
  'channels login': ['channels login signal'],
  backup: ['backup', 'backup --to /mnt/backups'],
  restore: ['restore', 'restore 2026-11-22T22-30-05Z'],
  'import sqlite': ['import sqlite', 'import sqlite /srv/parley/data/parley.db'],
  reload: ['reload'],
  'service install': ['service install', 'service install --print', 'service install --system'],
  'service status': ['service status'],
  'service uninstall': ['service uninstall'],
  'service logs': ['service logs -n 50', 'service logs --since 2h -f'],
  logs: ['logs -n 50', 'logs --since 10m', 'logs --since "2026-11-27 14:00" --json', 'logs -f'],
  'plugins add': ['plugins add ./weather', 'plugins add parley-weather'],
  'plugins list': ['plugins list'],
  'plugins check': ['plugins check', 'plugins check weather --accept'],
  'plugins remove': ['plugins remove weather'],
  'plugins new': ['plugins new weather'],
  'config check': ['config check'],
  'config schema': ['config schema > schema.json'],
};

const ofProgram = ['start', 'doctor', 'status', 'why 45', 'backup'];

/** Adds its examples to the help of the program and of each of its commands. */
export function addExamples(program: Command): void {
  add(program, ofProgram);
  for (const command of program.commands) addBelow(command, command.name());
}

function addBelow(command: Command, path: string): readonly string[] {
  const below = command.commands.flatMap((each) => addBelow(each, `${path} ${each.name()}`).slice(0, 1));
  const own = examples[path] ?? below;
  add(command, own);
  return own;
}

function add(command: Command, lines: readonly string[]): void {
  const words = lines.length === 1 ? 'Example' : 'Examples';
  const typed = lines.map((line) => `  ${parleyCommand} ${line}`);
  if (lines.length > 0) command.addHelpText('after', `\n${words}:\n${typed.join('\n')}`);
}

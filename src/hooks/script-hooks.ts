/**
 * Script hooks: executables in `hooks/` of an agent's workspace, which the configuration lists. Each runs as a copy of the
 * bytes whose SHA-256 the owner has accepted, outside the workspace, so that what an agent writes there never runs.
 */
import { createHash } from 'node:crypto';
import { lstat, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { HookContext, HookName } from '#contracts/hook.ts';
import type { Log } from '#contracts/log.ts';
import type { Config } from '../config/config.ts';
import { isHookName } from './hook-table.ts';
import type { Hooks } from './hooks.ts';
import { runScript } from './run-script.ts';

/** The settings that script hooks need. */
export type ScriptSettings = Pick<Config, 'hooks' | 'agents' | 'defaultAgent' | 'dataDir'>;

type ScriptEntry = Config['hooks'][number];

/** A script as it is on disk; `problem` says why it can't be used, and what to do. */
export type ScriptFile =
  | { readonly kind: 'found'; readonly path: string; readonly bytes: Buffer; readonly digest: string }
  | { readonly kind: 'unusable'; readonly path: string; readonly problem: string };

/** Registers the configured scripts. One that can't be used is listed as off; its hook closes if it is a guard. */
export async function openScriptHooks(
  settings: ScriptSettings,
  { hooks, log }: { readonly hooks: Hooks; readonly log: Log },
): Promise<void> {
  for (const entry of settings.hooks) {
    const { event, run: owner, timeoutMs, guard } = entry;
    const opened = await openScript(settings, entry);
    if ('problem' in opened) {
      log.error({ event, owner, problem: opened.problem }, 'hook.refused');
      // An unknown name closes nothing.
      hooks.setOff(event as HookName, { owner, problem: opened.problem, ...(guard && { guard }) });
      continue;
    }
    const handler = handlerOf(entry, opened);
    hooks.on(event as HookName, handler as never, { owner, timeoutMs, ...(guard && { guard }) });
  }
}

/** Reads a script of the configuration. */
export async function readScript(
  { agents, defaultAgent }: ScriptSettings,
  { event, run, agent = defaultAgent }: ScriptEntry,
): Promise<ScriptFile> {
  const workspace = agents.find(({ id }) => id === agent)?.workspace;
  const path = join(workspace ?? '', 'hooks', run);
  const unusable = (problem: string) => ({ kind: 'unusable', path, problem }) as const;
  const misuse = findMisuse(event);
  if (misuse !== undefined) return unusable(misuse);
  if (workspace === undefined) return unusable(`there is no agent ${agent}`);
  const stats = await lstat(path).catch(() => undefined);
  if (stats === undefined) return unusable(`${path} is missing`);
  if (!stats.isFile()) return unusable(`${path} isn't a file; links aren't followed`);
  if ((stats.mode & 0o111) === 0) return unusable(`${path} isn't executable. Run: chmod +x ${path}`);
  if (stats.size > maxScriptBytes) return unusable(`${path} has more than ${maxScriptBytes} bytes`);
  try {
    const bytes = await readFile(path);
    return { kind: 'found', path, bytes, digest: digestOf(bytes) };
  } catch {
    return unusable(`${path} can't be read`);
  }
}

const maxScriptBytes = 1024 * 1024;

function digestOf(bytes: Buffer): string {
  return `sha256-${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Says why no script can be called for the event; undefined if one can. */
function findMisuse(event: string): string | undefined {
  if (event === 'tool_result_persist')
    return 'tool_result_persist has to answer at once, which a script can’t; use after_tool_call';
  return isHookName(event) ? undefined : `there is no hook ${event}; docs/hooks.md lists them`;
}

type OpenedScript = { readonly file: string; readonly folder: string };

/** Compares the script with the accepted digest, and puts the copy that runs into the data folder. */
async function openScript(
  settings: ScriptSettings,
  entry: ScriptEntry,
): Promise<OpenedScript | { readonly problem: string }> {
  const found = await readScript(settings, entry);
  if (found.kind === 'unusable') return found;
  const { bytes, digest } = found;
  const accept = `If it is as you want it, run: ${parleyCommand} hooks accept ${entry.run}`;
  if (entry.digest === undefined) return { problem: `${found.path} hasn't been accepted. ${accept}` };
  if (entry.digest !== digest)
    return { problem: `${found.path} has changed since it was accepted. ${accept}` };
  const folder = join(settings.dataDir, 'hooks');
  const file = join(folder, digest);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const next = `${file}.${process.pid}.new`;
    await writeFile(next, bytes, { mode: 0o500 });
    await rename(next, file);
  } catch {
    return { problem: `${folder} can't be written` };
  }
  return { file, folder };
}

type AgentEvent = { readonly agentId?: string; readonly run?: { readonly agentId?: string } };

/** A script of one agent isn't shown what belongs to another. */
function handlerOf({ event: hook, agent }: ScriptEntry, { file, folder }: OpenedScript) {
  return async (event: AgentEvent, { signal }: HookContext): Promise<unknown> => {
    const of = event.agentId ?? event.run?.agentId;
    if (agent !== undefined && of !== undefined && of !== agent) return undefined;
    return runScript({ file, folder, input: JSON.stringify({ hook, event }) }, signal);
  };
}

import type { HookEvents } from '#contracts/hook.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { hookRunOf } from '../hooks/hook-run.ts';
import type { Hooks } from '../hooks/hooks.ts';

/** Returns why a hook refuses a sub-agent, if one does. One that fails refuses, too. */
export async function askSpawningHook(
  hooks: Hooks | undefined,
  run: ToolRun,
  spawn: Omit<HookEvents['subagent_spawning'], 'run'>,
): Promise<string | undefined> {
  if (!hooks?.has('subagent_spawning')) return undefined;
  const { end } = await hooks.decide('subagent_spawning', { run: hookRunOf(run), ...spawn });
  if (end?.kind === 'decided') return `Not allowed: ${end.decision.reason}`;
  return end && `Not allowed: the hook ${end.owner} failed.`;
}

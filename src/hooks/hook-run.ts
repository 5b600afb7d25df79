import type { HookRun } from '#contracts/hook.ts';
import type { ToolRun } from '#contracts/tool.ts';

/** Returns what hooks see of a run. */
export function hookRunOf({ workspace: _, epoch: __, type: ___, skills: ____, ...run }: ToolRun): HookRun {
  return run;
}

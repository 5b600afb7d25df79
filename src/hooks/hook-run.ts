import type { HookRun } from '#contracts/hook.ts';
import type { ToolRun } from '#contracts/tool.ts';

/** Returns what hooks see of a run: data, since each handler gets a copy of its own. */
export function hookRunOf({ route, role, ...run }: ToolRun): HookRun {
  const { runId, sessionId, sessionKey, agentId, authority } = run;
  return {
    ...{ runId, sessionId, sessionKey, agentId, authority },
    ...(route && { route }),
    ...(role && { role }),
  };
}

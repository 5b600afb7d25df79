import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accountId, agentId, channelId, conversationId, runId, sessionId } from '#contracts/ids.ts';
import { formatSessionKey } from '#contracts/session-key.ts';
import type { Tool, ToolContext, ToolRun } from '#contracts/tool.ts';
import { createFilesPlugin } from '../../../plugins/files/index.ts';
import { createPluginHost } from '../../../src/plugin-host/plugin-host.ts';
import { noHooks } from '../../support/no-hooks.ts';
import { nothingToSettle } from '../../support/nothing-to-settle.ts';
import { silentLog } from '../../support/silent-log.ts';

/** Creates a workspace and a folder next to it, both removed by `remove`, with the file tools as a run gets them. */
export async function aWorkspace(config: object = {}, more: Pick<ToolRun, 'receivedFiles'> = {}) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'parley-files-')));
  const workspace = join(folder, 'workspace');
  const outside = join(folder, 'outside');
  await mkdir(workspace);
  await mkdir(outside);
  const host = createPluginHost({ log: silentLog, settle: nothingToSettle, hooks: noHooks });
  const reports = await host.load([{ definition: createFilesPlugin('linux'), config }]);
  const run = { ...aRun(workspace), ...more };
  const tools = new Map(host.toolsFor(run).map((tool) => [tool.name, tool]));
  return {
    folder,
    workspace,
    outside,
    reports,
    tools,
    reader: host.workspaceReader(),
    /**
     * Calls a tool as the loop does: arguments through its schema, then `execute`. Resolves with the text, or rejects.
     */
    async call(name: string, args: object, signal = new AbortController().signal): Promise<string> {
      const tool = tools.get(name);
      if (tool === undefined) throw new Error(`no tool ${name}`);
      return callTool(tool, args, { run, signal });
    },
    /** Does the same for a call that an earlier attempt has started. */
    async repeat(name: string, args: object): Promise<string> {
      const tool = tools.get(name);
      if (tool === undefined) throw new Error(`no tool ${name}`);
      return callTool(tool, args, { run, signal: new AbortController().signal, isRepeat: true });
    },
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}

export type AWorkspace = Awaited<ReturnType<typeof aWorkspace>>;

async function callTool(
  tool: Tool,
  args: object,
  ctx: Pick<ToolContext, 'run' | 'signal' | 'isRepeat'>,
): Promise<string> {
  const output = await tool.execute(tool.inputSchema.parse(args), {
    ...ctx,
    callId: 'c1',
    update: () => undefined,
  });
  if ('parked' in output) throw new Error('the tool waits');
  return output.text;
}

function aRun(workspace: string): ToolRun {
  const [channel, account, conversation] = [channelId('net'), accountId('77'), conversationId('12')];
  const agent = agentId('main');
  return {
    runId: runId('r1'),
    sessionId: sessionId('s1'),
    sessionKey: formatSessionKey({ kind: 'group', agent, account, channel, group: conversation }),
    agentId: agent,
    route: { channel, account, conversation },
    authority: 'owner',
    workspace,
    epoch: 1,
  };
}

/** Threat 17: whatever ids a model makes up, the tools of a run that isn't the owner's only show its own session. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { agentId, type RunId, type SessionId, type SessionKey } from '../../src/contracts/ids.ts';
import type { Authority } from '../../src/contracts/outcome.ts';
import type { PluginApi } from '../../src/contracts/plugin.ts';
import type { Tool, ToolFactory, ToolRun } from '../../src/contracts/tool.ts';
import { createToolSender } from '../../src/outbox/tool-sender.ts';
import { workspaceDisks } from '../../src/processes/disk-gate.ts';
import type { Store } from '../../src/store/base/command.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { corePlugin } from '../../src/tools/core-tools.ts';
import { aLane, aMessage, aWorker, routeFor, unique } from '../store/builders.ts';
import { shaping } from '../support/free-loop.ts';
import { isLong } from '../support/long-run.ts';
import { noHooks } from '../support/no-hooks.ts';
import { nothingToSettle } from '../support/nothing-to-settle.ts';
import { openStore } from '../support/open-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

const foreign = isLong ? 1_000 : 100;
const secret = 'FOREIGN-CONTENT';

describe("a guest's tools (threat 17)", () => {
  let dataDir = '';
  let store: Store | undefined;
  let own: ClaimedRun | undefined;
  const others: ClaimedRun[] = [];

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-threat-'));
    store = await openStore({ kind: 'sqlite', dataDir });
    const worker = aWorker(store);
    const converse = async (text: string) => {
      const conversation = unique('c');
      await worker.accept(aMessage({ conversation, text }));
      return worker.claimRun(aLane(conversation).key, 600_000);
    };
    own = await converse('my own words');
    for (let n = 0; n < foreign; n++) {
      const run = await converse(`${secret} ${n}`);
      others.push(run);
      await worker.answer(run, `${secret} answer ${n}`);
    }
  });
  afterAll(async () => {
    await store?.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });

  it('shows a guest nothing of another session, by any id or key', async () => {
    const tools = toolsOf(store, own, 'guest');
    const shown: string[] = [];
    for (const id of guesses(others)) {
      const inputs = [
        ['sessions_history', { sessionId: id }],
        ['sessions_history', { sessionId: id, limit: 200, before: 1_000_000 }],
        ['sessions_list', { limit: 100, keys: [id], laneKey: id }],
        ['session_status', { laneKey: id, sessionId: id, keys: [id] }],
      ] as const;
      for (const [name, input] of inputs) shown.push(await use(tools, name, input));
    }
    expect(shown.filter((text) => text.includes(secret))).toEqual([]);
    const keys = others.flatMap((run) => [run.laneKey, run.sessionId]);
    const echoed = shown.filter(
      (text) => !text.startsWith('refused') && keys.some((key) => text.includes(key)),
    );
    expect(echoed).toEqual([]);
    expect(await use(tools, 'sessions_history', {})).toContain('my own words');
  });

  it('sends no message to another conversation for a guest', async () => {
    const tools = toolsOf(store, own, 'guest');
    for (const run of others) {
      expect(await use(tools, 'message', { text: 'hello', to: run.laneKey })).toContain('Only the owner');
    }
  });

  it('would notice a leak: the owner reads all sessions', async () => {
    const tools = toolsOf(store, own, 'owner');
    const [first] = others;
    expect(await use(tools, 'sessions_history', { sessionId: first?.sessionId })).toContain(secret);
    expect(await use(tools, 'sessions_list', { limit: 100 })).toContain(String(others.at(-1)?.laneKey));
  });
});

/** Real ids of others, and variants that a model might make of them. */
function guesses(others: readonly ClaimedRun[]): readonly unknown[] {
  const forms = [
    (run: ClaimedRun) => run.sessionId,
    (run: ClaimedRun) => run.laneKey,
    (run: ClaimedRun) => run.runId,
    (run: ClaimedRun) => `${run.sessionId}' or '1'='1`,
    (run: ClaimedRun) => `${run.sessionId}\0`,
    (run: ClaimedRun) => run.sessionId.toUpperCase(),
    (run: ClaimedRun) => [run.sessionId],
  ];
  const fixed: readonly unknown[] = [
    '%',
    '*',
    '',
    ' ',
    'null',
    '../..',
    null,
    0,
    true,
    {},
    { toString: 'x' },
  ];
  return [...others.flatMap((run) => forms.map((form) => form(run))), ...fixed];
}

function toolsOf(
  store: Store | undefined,
  run: ClaimedRun | undefined,
  authority: Authority,
): readonly Tool[] {
  if (!store || !run) throw new Error('the store is not open');
  const post = createToolSender({ store, clock: systemClock, deliver: () => undefined });
  const factories: ToolFactory[] = [];
  const register = (_name: string, factory: ToolFactory) => void factories.push(factory);
  const config = { dataDir: '/nowhere', media: { maxMb: 1, maxMbPerHour: 1, maxUploadsMb: 64, keepDays: 1 } };
  const files = {
    config,
    workspaceReader: () => undefined,
    agents: { settingsOf: () => ({ tools: { deny: [] } }) },
  };
  const plugin = corePlugin({
    store,
    start: () => undefined,
    gateway: { status: () => Promise.reject(new Error('not here')), plugins: () => [] },
    toolSender: post,
    ...shaping,
    ...files,
    capabilitiesFor: () => undefined,
    channelTools: [],
    fitImage: async () => undefined,
    channelToolsFor: () => [],
  });
  const workspaces = { serve: () => undefined };
  const api = {
    ...{ log: silentLog, disks: workspaceDisks, settle: nothingToSettle, hooks: noHooks, workspaces },
    skills: {
      read: async () => {
        throw new Error('there are no skills');
      },
      environmentOf: () => ({}),
    },
    tools: { register },
  };
  // The core tools use nothing else.
  plugin.setup(api as Partial<PluginApi> as PluginApi, undefined);
  const toolRun: ToolRun = {
    runId: run.runId as RunId,
    sessionId: run.sessionId as SessionId,
    sessionKey: run.laneKey as SessionKey,
    agentId: agentId(run.agentId),
    route: routeFor(run),
    authority,
    workspace: tmpdir(),
    epoch: run.epoch,
  };
  return factories.flatMap((factory) => factory(toolRun) ?? []);
}

/** Runs a tool as the loop would: the input is validated, and a fault is returned as text. */
async function use(tools: readonly Tool[], name: string, input: unknown): Promise<string> {
  const tool = tools.find((one) => one.name === name);
  if (!tool) throw new Error(`there is no tool ${name}`);
  const parsed = tool.inputSchema.safeParse(input);
  if (!parsed.success) return 'refused: invalid input';
  const context = {
    callId: crypto.randomUUID(),
    run: {} as ToolRun,
    signal: AbortSignal.timeout(patienceMs),
    update: () => undefined,
  };
  try {
    const output = await tool.execute(parsed.data, context);
    return 'parked' in output ? output.parked.reason : output.text;
  } catch (error) {
    return `refused: ${error instanceof Error ? error.message : String(error)}`;
  }
}

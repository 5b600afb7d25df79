import { z } from 'zod';
import { formatSessionKey } from '#contracts/session-key.ts';
import { systemClock } from '../src/channel-kit/system-clock.ts';
import type { CallRule } from '../src/config/config.ts';
import {
  accountId,
  agentId,
  channelId,
  conversationId,
  peerId,
  runId,
  sessionId,
} from '../src/contracts/ids.ts';
import type { Log } from '../src/contracts/log.ts';
import type { MessagePart, ToolCallData } from '../src/contracts/message.ts';
import { defineTool, type ToolRun } from '../src/contracts/tool.ts';
import { createHooks, type Hooks } from '../src/hooks/hooks.ts';
import { createPermit } from '../src/runs/permit-call.ts';
import { persistHookOf, toolHooksOf } from '../src/runs/run-hooks.ts';
import type { Figure } from './figure.ts';
import { median } from './statistics.ts';

const handlers = 5;
const callsPerRound = 500;
/** A tool call and its result have this much text, characters. */
const textLength = 2000;

type Handling = 'none' | 'sync' | 'async';

/** Measures what hooks and permission add to one tool call; the tool itself does nothing. */
export async function measureHooks(rounds: number): Promise<readonly Figure[]> {
  const cases = [
    { name: 'no handler, no rule', handling: 'none', rules: 0, target: '≤ 100 µs' },
    { name: 'no handler, 20 rules of which none fits', handling: 'none', rules: 20, target: '' },
    { name: 'five handlers of each of the three hooks', handling: 'sync', rules: 0, target: '' },
    { name: 'the same, those that may be asynchronous are', handling: 'async', rules: 0, target: '' },
  ] as const;
  const measured = cases.map((each) => ({
    ...each,
    call: aCall(each.handling, each.rules),
    times: [] as number[],
  }));
  // Alternating, so that all see the machine in the same state; the first round compiles.
  for (let round = 0; round <= rounds; round++)
    for (const { call, times } of measured) {
      const begun = performance.now();
      for (let count = 0; count < callsPerRound; count++) await call();
      if (round > 0) times.push((performance.now() - begun) / callsPerRound);
    }
  return measured.map(({ name, times, target }) => ({
    ...{ name, unit: 'µs', target },
    parley: 1000 * median(times),
  }));
}

/** Returns what happens around one call: hooks before it, permission, hooks after it, and before it is stored. */
function aCall(handling: Handling, ruleCount: number): () => Promise<void> {
  const hooks = someHooks(handling);
  const text = 'x'.repeat(textLength);
  const call: ToolCallData = { id: 'c1', name: tool.name, input: '', finished: true };
  const input = { path: 'notes.txt', content: text };
  const rules: readonly CallRule[] = Array.from({ length: ruleCount }, (_, index) => ({
    ...{ tool: tool.name, match: { path: `folder-${index}/*.txt` }, action: 'deny' },
  }));
  const permit = createPermit({
    // Without an approval, nothing is read.
    store: undefined as never,
    rulesOf: () => rules,
    authoritiesOf: async () => [],
  });
  const data = { tool_call_id: call.id, name: tool.name, content: text, is_error: false };
  const parts: readonly MessagePart[] = [{ type: 'tool_result', data }];
  const of = { runId: run.runId, call: { id: call.id, name: tool.name }, source: 'tool' } as const;
  return async () => {
    const { beforeToolCall, afterToolCall } = toolHooksOf(hooks, run);
    await beforeToolCall?.(call, input);
    await permit(run, { call, tool, input, digest: () => '', isApproved: false });
    await afterToolCall?.(call, { output: { text }, isError: false });
    persistHookOf(hooks)?.(of, parts);
  };
}

const [account, channel, conversation] = [accountId('bot'), channelId('net'), conversationId('ada')];
const agent = agentId('main');
const run: ToolRun = {
  ...{
    runId: runId('run-1'),
    sessionId: sessionId('session-1'),
    agentId: agent,
    authority: 'owner',
    epoch: 1,
  },
  sessionKey: formatSessionKey({ kind: 'direct', agent, account, channel, peer: peerId('ada') }),
  ...{ route: { channel, account, conversation }, workspace: '/nowhere' },
};

const tool = defineTool({
  name: 'write',
  description: 'writes a file',
  inputSchema: z.object({ path: z.string(), content: z.string() }),
  parallelSafe: false,
  replay: 'safe',
  authority: 'member',
  execute: async () => ({ text: '' }),
});

function someHooks(handling: Handling): Hooks {
  const hooks = createHooks({ log: silent, clock: systemClock });
  if (handling === 'none') return hooks;
  const look = handling === 'async' ? async () => undefined : () => undefined;
  for (let count = 0; count < handlers; count++) {
    const owner = `bench-${count}`;
    hooks.on('before_tool_call', look, { owner });
    hooks.on('after_tool_call', look, { owner });
    hooks.on('tool_result_persist', () => undefined, { owner });
  }
  return hooks;
}

const silent: Log = {
  ...{ debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
  child: () => silent,
};

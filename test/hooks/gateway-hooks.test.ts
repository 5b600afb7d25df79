/** Every observing hook at its place in a running gateway, where one handler throws, one hangs and one answers late. */
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { ObservingHook } from '#contracts/hook.ts';
import type { PluginApi, PluginDefinition } from '#contracts/plugin.ts';
import { createPluginHarness, type PluginHarness } from '../../src/testing/plugin-harness.ts';
import { observedEvents } from './some-events.ts';

const observing = Object.keys(observedEvents) as ObservingHook[];
const sessionKey = 'main:bot:harness:dm:owner';

/** What an event says of this gateway's conversation. */
const facts: Readonly<Record<string, object | undefined>> = {
  gateway_start: { version: 'test', role: 'all' },
  message_sent: { sessionKey, result: 'sent' },
  session_start: { sessionKey },
  before_reset: { sessionKey, command: 'new' },
  before_model_call: { provider: 'script', purpose: 'summary' },
  after_model_call: { provider: 'script', purpose: 'turn', result: 'answered' },
  agent_end: { run: expect.objectContaining({ sessionKey }), reason: 'natural' },
  'command:status': { command: 'status', sessionKey, sender: { id: 'owner', name: 'owner' } },
};

/** How many handlers each hook has. */
const handlers = 4;

type Seen = { readonly name: string; readonly event: Record<string, unknown> };

/** A plugin whose handlers of all observing hooks misbehave in every way, next to one that looks. */
function watching() {
  const seen: Seen[] = [];
  const late: string[] = [];
  const plugin: PluginDefinition = {
    id: 'watch',
    configSchema: z.unknown(),
    setup: (api) => {
      for (const name of observing) register(api, name);
      return () => undefined;
    },
  };
  const register = ({ hooks }: PluginApi, name: ObservingHook) => {
    const on = (handler: (event: Seen['event']) => unknown) =>
      hooks.on(name, handler as never, { timeoutMs: 30 });
    on(() => Promise.reject(new Error('broken on purpose')));
    on(() => new Promise(() => undefined));
    on(() => delay(60).then(() => late.push(name)));
    on((event) => void seen.push({ name, event }));
  };
  return { plugin, seen, late };
}

/** Lets each hook happen: a turn with a sub-agent, a summary, a command, a new session, and the end of the process. */
async function playAll(parley: PluginHarness) {
  const answers: string[] = [];
  const say = async (text: string) => answers.push(...(await parley.say(text)));
  const { model } = parley;
  model.calls('sessions_spawn', { task: 'count to three', wait: true });
  model.says('one, two, three');
  model.says('Counted.');
  await say('count, please');
  for (const turn of [1, 2, 3, 4]) {
    model.says(`answer ${turn} ${'word '.repeat(600)}`);
    await say(`question ${turn}`);
  }
  model.says('What was said so far: little.');
  await say('/compact');
  await say('/status');
  await say('/hooks');
  answers.push(...(await parley.say('/hooks', { as: 'guest' })));
  await say('/new');
  await parley.stop();
  return answers;
}

describe('an observing hook of a running gateway', () => {
  const { plugin, seen, late } = watching();
  let log: readonly string[] = [];
  let answers: readonly string[] = [];
  beforeAll(async () => {
    const parley = await createPluginHarness({ plugin });
    log = parley.log();
    answers = await playAll(parley);
  }, 60_000);

  it.each(observing)('shows %s its event, and the failures of other handlers are counted', async (name) => {
    const events = eventsOf(name);
    expect(events.map((event) => Object.keys(event).sort())).toContainEqual(
      Object.keys(observedEvents[name] ?? {}).sort(),
    );
    expect(events).toContainEqual(expect.objectContaining(facts[name] ?? {}));
    const failures = log.filter((line) => line.startsWith('hook.failed') && line.includes(`"${name}"`));
    expect(failures.join()).toContain('broken on purpose');
    expect(failures.join()).toContain('no answer within 30 ms');
    await vi.waitFor(() => expect(late).toContain(name));
  });

  it('reports each ended session and sub-agent once', () => {
    const [main, child] = eventsOf('session_start').map(({ sessionId }) => sessionId);
    expect(eventsOf('session_end')).toEqual([{ sessionId: child }, { sessionId: main }]);
    expect(eventsOf('subagent_ended')).toEqual([{ id: child }]);
  });

  it('has no effect on the conversation, whatever its handlers do', () => {
    expect(answers).toHaveLength(10);
    expect(answers[0]).toBe('Counted.');
    expect(answers[5]).toContain('summarised');
    expect(answers[6]).toContain('Agent main');
    expect(answers[9]).toContain('new conversation');
  });

  it('appears in /hooks with its calls and failures, for owners only', () => {
    const lines = (answers[7] ?? '').split('\n');
    expect(lines.at(-1)).toBe(`and ${observing.length * handlers - 30} more.`);
    expect(lines).toContain('gateway_start · watch · active · calls: 1, failures: 1');
    expect(lines).toContain('gateway_start · watch · active · calls: 1, failures: 0');
    expect(lines).toContain('message_sent · watch · suspended · calls: 5, failures: 5');
    expect(answers[8]).toBe('Only my owner may use /hooks.');
  });

  function eventsOf(name: ObservingHook) {
    return seen.filter((each) => each.name === name).map(({ event }) => event);
  }
});

it('stores an awaited sub-agent’s result only as a plugin’s tool_result_persist has left it', async () => {
  const sources: string[] = [];
  const plugin: PluginDefinition = {
    id: 'hides',
    configSchema: z.unknown(),
    setup: ({ hooks }) => {
      hooks.on('tool_result_persist', ({ source, result: { text } }) => {
        sources.push(source);
        return { kind: 'rewrite', text: text.replaceAll('1234', '****') };
      });
      return () => undefined;
    },
  };
  await using parley = await createPluginHarness({ plugin });
  parley.model.calls('sessions_spawn', { task: 'find the token', wait: true });
  parley.model.says('the token is 1234');
  parley.model.says('Found.');
  expect(await parley.say('find the token, please')).toEqual(['Found.']);
  expect(sources).toEqual(['child']);
  expect(parley.toolResults().join()).toContain('the token is ****');
  expect(parley.toolResults().join()).not.toContain('1234');
});

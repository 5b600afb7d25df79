import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import type { HookName } from '../../src/contracts/hook.ts';
import { hookedCalls } from '../../src/hooks/hooked-calls.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { prepareMessage } from '../../src/hooks/prepare-message.ts';
import { createAgents } from '../../src/runs/agents.ts';
import { planAnswer } from '../../src/runs/plan-answer.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aMessage } from '../agent/support/builders.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aHookRun } from '../hooks/some-events.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aRoute } from '../store/builders.ts';
import { shaping } from '../support/free-loop.ts';
import { openOwnStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { call } from '../tools/message-call.ts';
import { playNext } from './run-builders.ts';

type Handlers = Partial<Record<HookName, (event: never) => unknown>>;

function hooksWith(on: Handlers, options: { readonly guard?: boolean } = {}) {
  const hooks = createHooks({ log: silentLog, clock: systemClock });
  for (const [name, handler] of Object.entries(on))
    hooks.on(name as HookName, handler as never, { owner: 'test', ...options });
  return hooks;
}

describe('hooks of a run', () => {
  const store = openOwnStore();
  const system = [{ text: 'Be kind.', isStable: true }];

  const play = async (on: Handlers) => {
    const { laneKey, say } = aConversation(store());
    await say('go');
    const model = scriptedModel(says('done'));
    const over = { hooks: hooksWith(on), systemFor: async () => system };
    const { run } = await playNext(store(), laneKey, { model, over });
    return { run, prompt: model.requests[0]?.system };
  };

  it('sends the instructions and the context of before_agent_start', async () => {
    const seen: unknown[] = [];
    const { prompt } = await play({
      before_agent_start: (event) => {
        seen.push(event);
        return { kind: 'rewrite', prompt: 'Be brief.', context: 'It rains.' };
      },
    });
    expect(seen).toMatchObject([{ prompt: 'Be kind.', context: [], run: { agentId: 'main' } }]);
    expect(prompt).toEqual([
      { text: 'Be brief.', isStable: true },
      { text: 'It rains.', isStable: false },
    ]);
  });

  it.each([
    ['throws', () => Promise.reject(new Error('no'))],
    ['answers in another form', () => 'Be brief.'],
  ])('sends the instructions as they are if before_agent_start %s', async (_, handler) => {
    expect((await play({ before_agent_start: handler })).prompt).toEqual(system);
  });

  it('tells when a session and a run begin and end', async () => {
    const seen: unknown[] = [];
    const note = (event: object) => void seen.push(event);
    const { run } = await play({ session_start: note, agent_end: note });
    const { sessionId, laneKey: sessionKey, runId } = run;
    expect(seen).toMatchObject([
      { sessionId, sessionKey },
      { run: { runId }, reason: 'natural' },
    ]);
  });

  it('builds the prompt from the files of agent_bootstrap', async () => {
    const config = loadConfig({ values: {}, unknown: [] }, '/nowhere');
    const files = [{ name: 'TEAM.md', text: 'Ada leads.' }];
    const hooks = hooksWith({ agent_bootstrap: () => ({ kind: 'rewrite', files }) });
    const [agent] = config.agents;
    if (agent === undefined) throw new Error('no agent');
    const { promptFor } = createAgents(config, { log: silentLog, hooks });
    const blocks = await promptFor({ agentId: agent.id }, { chatKind: 'dm', tools: [] });
    expect(blocks.map(({ text }) => text).join()).toContain('## TEAM.md\nAda leads.');
  });

  it('tells about each attempt at a model call', async () => {
    const seen: unknown[] = [];
    const note = (event: object) => void seen.push(event);
    const subject = { runId: 'r', epoch: 1, sessionId: 's', agentId: 'main', purpose: 'turn' } as const;
    const observer = hookedCalls(hooksWith({ before_model_call: note, after_model_call: note }), systemClock);
    const sent = { provider: 'lab', model: 'm', request: {} as never, subject };
    observer.begin(sent).end({ kind: 'failed', failure: { kind: 'failed', detail: 'no' } });
    observer.begin({ ...sent, subject: undefined }).end({ kind: 'abandoned' });
    const known = { provider: 'lab', model: 'm', purpose: 'turn', run: { runId: 'r' } };
    expect(seen).toMatchObject([known, { ...known, result: 'failed' }]);
    expect(seen[0]).not.toHaveProperty('result');
  });
});

describe('message_sending', () => {
  const route = aRoute('here');
  const answer = (on: Handlers, options: { readonly guard?: boolean } = {}) => {
    const hooks = hooksWith(on, options);
    return planAnswer(
      aMessage('assistant', 'a', { type: 'text', data: { text: 'the key is 123' } }),
      {
        run: { target: route, chatKind: 'dm' },
        capabilities: { ...plainCapabilities, text: { maxLength: 12 } },
        ...{ replyToMode: 'off', texts: textsFor('en'), ...shaping, display: {}, silence: ['chat'] },
        hasSeen: async () => true,
        prepare: (text, to) => prepareMessage(hooks, { source: 'answer', run: aHookRun, route: to, text }),
      },
      { toolSends: [], files: [], lines: [], toolFailure: undefined, suppressAcknowledgements: true },
    );
  };

  it('judges a complete answer, before it is split', async () => {
    const seen: string[] = [];
    const plan = await answer({
      message_sending: ({ text }: { text: string }) => {
        seen.push(text);
        return { kind: 'rewrite', text: text.replace('123', '***') };
      },
    });
    expect(seen).toEqual(['the key is 123']);
    expect(JSON.stringify(plan)).not.toContain('123');
    expect(plan).toMatchObject({ kind: 'send' });
  });

  it('cancels an answer with a reason', async () => {
    const plan = await answer({ message_sending: () => ({ kind: 'cancel', reason: 'a key' }) });
    expect(plan).toEqual({ kind: 'cancelled', by: 'test', reason: 'a key' });
  });

  it('sends an answer although its hook fails, and keeps it back if that is a guard', async () => {
    const on = { message_sending: () => Promise.reject(new Error('no')) };
    expect(await answer(on)).toMatchObject({ kind: 'send' });
    expect(await answer(on, { guard: true })).toMatchObject({ kind: 'cancelled', by: 'test' });
  });

  it('judges the texts of the message tool, and tells the model if one was cancelled', async () => {
    const rewrite = hooksWith({ message_sending: () => ({ kind: 'rewrite', text: 'the key is ***' }) });
    const { sent, output } = await call({ text: 'the key is 123' }, { hooks: rewrite });
    expect(sent).toEqual(['the key is ***']);
    expect(JSON.stringify(output)).not.toContain('123');
    const cancel = hooksWith({ message_sending: () => ({ kind: 'cancel', reason: 'a key' }) });
    await expect(call({ text: 'the key is 123' }, { hooks: cancel })).rejects.toThrow(
      'Not sent: a key (hook test)',
    );
    expect((await call({ text: 'the key is 123' }, { hooks: cancel, isPosted: true })).sent).toEqual([]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fileSchema } from '../../src/config/schema.ts';
import {
  type AgentEvent,
  agentLoop,
  agentLoopContinue,
  anthropic,
  costLimit,
  defineTool,
  demoModel,
  openai,
  textOf,
  userMessage,
  z,
} from '../../src/library/agent-kit.ts';
import { runSettingsFrom } from '../../src/runs/agents.ts';
import { grammarErrors } from '../agent/support/event-grammar.ts';
import { endOf, play, resultsOf } from '../agent/support/run-loop.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { type OpenAiServer, startOpenAiServer } from '../platforms/openai/server.ts';

const keys = ['key-1', 'key-2', 'key-3'];
let claude: AnthropicServer;
let gpt: OpenAiServer;
beforeAll(async () => {
  claude = await startAnthropicServer({ keys, mayRefuse: 'wrong keys' });
  gpt = await startOpenAiServer({ keys, mayRefuse: 'wrong keys' });
});
afterAll(async () => {
  await claude.close();
  await gpt.close();
});

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }, { run, update }) => {
    update('adding');
    return { text: `${a + b} for ${run.authority}` };
  },
});
const adding = [{ toolCalls: [{ name: 'add', input: { a: 2, b: 3 } }] }, { text: 'Five.' }];

function answerIn(events: readonly AgentEvent[]): string {
  return textOf(endOf(events).messages.at(-1)?.parts ?? []);
}

describe('the loop for other programs', () => {
  it.each(['anthropic', 'openai'] as const)('runs with a tool on a model of %s', async (kind) => {
    claude.script(adding);
    gpt.script(adding);
    const model =
      kind === 'anthropic'
        ? anthropic('claude-sonnet-5-5', { apiKey: 'key-1', baseUrl: claude.url })
        : openai('gpt-5', { apiKey: 'key-1', baseUrl: gpt.url });
    const { events, messages } = await play(agentLoop('What is 2 + 3?', { tools: [add] }, { model }));
    expect(resultsOf(messages)).toEqual([expect.stringMatching(/: 5 for owner$/)]);
    expect(answerIn(events)).toBe('Five.');
    expect(endOf(events).reason).toBe('natural');
    expect(grammarErrors(events)).toEqual([]);
  });

  it.each(['anthropic', 'openai'] as const)('asks for a key before each model call of %s', async (kind) => {
    claude.script(adding);
    gpt.script(adding);
    const [claudeBefore, gptBefore] = [claude.requests.length, gpt.requests.length];
    const model =
      kind === 'anthropic'
        ? anthropic('claude-sonnet-5-5', { apiKey: 'expired', baseUrl: claude.url })
        : openai('gpt-5', { apiKey: 'expired', baseUrl: gpt.url });
    const fresh = ['key-2', 'key-3'];
    const options = { model, getApiKey: async () => fresh.shift() };
    const { events } = await play(agentLoop('What is 2 + 3?', { tools: [add] }, options));
    expect(endOf(events).reason).toBe('natural');
    const used =
      kind === 'anthropic'
        ? claude.requests.slice(claudeBefore).map(({ keyIndex }) => keyIndex)
        : gpt.requests.slice(gptBefore).map(({ keyIndex }) => keyIndex);
    expect(used).toEqual([1, 2]);
  });

  it('fails the call if no key can be had, and never tells the key', async () => {
    const model = anthropic('claude-sonnet-5-5', { apiKey: 'sk-secret-1', baseUrl: claude.url });
    const options = { model, getApiKey: () => Promise.reject(new Error('signed out')) };
    const { events } = await play(agentLoop('Hello?', {}, options));
    expect(endOf(events)).toMatchObject({ reason: 'model_error' });
    expect(JSON.stringify(events)).not.toContain('sk-secret-1');
  });

  it('continues a conversation that waits for the model', async () => {
    const messages = [userMessage('hello')];
    const { events } = await play(agentLoopContinue({ messages }, { model: demoModel() }));
    expect(answerIn(events)).toContain('You said: “hello”');
    expect(() => agentLoopContinue({}, { model: demoModel() })).toThrow(/start it with a prompt/);
  });

  it('stops a run that has become too expensive, but never a complete answer', async () => {
    const model = anthropic('claude-sonnet-5-5', { apiKey: 'key-1', baseUrl: claude.url });
    claude.script(adding);
    const middleware = [costLimit(1)];
    const stopped = await play(agentLoop('What is 2 + 3?', { tools: [add] }, { model, middleware }));
    expect(endOf(stopped.events)).toMatchObject({
      reason: 'stopped',
      detail: expect.stringMatching(/^it has cost \$0\.\d{6} of \$0\.000001$/),
    });
    claude.script([{ text: 'Hi.' }]);
    const answered = await play(agentLoop('Hello?', {}, { model, middleware }));
    expect(endOf(answered.events).reason).toBe('natural');
    claude.script(adding);
    const ample = { model, middleware: [costLimit(5_000_000)] };
    const { events } = await play(agentLoop('What is 2 + 3?', { tools: [add] }, ample));
    expect(answerIn(events)).toBe('Five.');
  });

  it('ends with its signal', async () => {
    const { events } = await play(agentLoop('Hello?', {}, { model: demoModel() }, AbortSignal.abort()));
    expect(endOf(events).reason).toBe('aborted');
  });

  it('has the limits of the default settings', async () => {
    let turns = 0;
    const again = defineTool({
      name: 'again',
      description: 'Asks to be called again.',
      inputSchema: z.looseObject({}),
      execute: async () => ({ text: 'Again!' }),
    });
    claude.script(() => ({ toolCalls: [{ name: 'again', input: { turn: turns++ } }] }));
    const model = anthropic('claude-sonnet-5-5', { apiKey: 'key-1', baseUrl: claude.url });
    const { events } = await play(agentLoop('Go.', { tools: [again] }, { model }));
    expect(endOf(events).reason).toBe('turn_limit');
    expect(turns).toBe(runSettingsFrom(fileSchema.parse({})).limits.turns);
  });
});

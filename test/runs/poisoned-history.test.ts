/** Whatever a model or a tool writes into a conversation, the next message is still answered. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentMessage, MessagePart } from '../../src/contracts/message.ts';
import type { ToolOutput } from '../../src/contracts/tool.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { commitToolTurn, storeToolResults } from '../../src/store/lanes/commit-turn.ts';
import { readHistory } from '../../src/store/reads/read-transcript.ts';
import { aTool } from '../agent/support/builders.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { ScriptedCall } from '../platforms/anthropic/turn.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { isLong } from '../support/long-run.ts';
import { aPng } from '../support/one-pixel.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext } from './run-builders.ts';

const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth);
const inTotal = isLong ? 10_000 : 100;

describe('a poisoned history', () => {
  const store = openOwnStore();
  let model: AnthropicServer;
  beforeAll(async () => {
    model = await startAnthropicServer({ mayRefuse: 'it refuses what is spoilt' });
  });
  afterAll(() => model.close());

  const provider = () =>
    createAnthropicProvider({ model: 'claude-opus-4-6', apiKeys: ['test-key'], baseUrl: model.url });

  /** Sends `text` and runs it; returns the requests that the model received. */
  const say = async (conversation: string, text: string, give?: () => ToolOutput) => {
    await aWorker(store()).accept(aMessage({ conversation, text }));
    const before = model.requests.length;
    const execute = async () => give?.() ?? { text: 'done' };
    const tools = [aTool('act', { execute, parallelSafe: true })];
    const { run } = await playNext(store(), aLane(conversation).key, {
      model: { ...provider(), requests: [] },
      tools,
    });
    return { run, asked: model.requests.slice(before) };
  };

  const outcomes = async (conversation: string) =>
    (await readLane(store(), aLane(conversation).key)).inbox.map(({ outcome }) => outcome);

  /** Lets the first message make the model call these tools, and expects the next one to be answered. */
  const survives = async (toolCalls: readonly ScriptedCall[], give?: () => ToolOutput) => {
    const conversation = unique('c');
    model.script((_body, count) => (count === 1 ? { text: 'I try.', toolCalls } : { text: 'Here I am.' }));
    const first = await say(conversation, 'go', give);
    const second = await say(conversation, 'and now?');
    expect([...first.asked, ...second.asked].filter(({ refusal }) => refusal !== undefined)).toEqual([]);
    // Repeating the same call ends its own run, but nothing else.
    expect((await outcomes(conversation)).at(-1)).toBe('answered');
    return store().read(readHistory, { sessionId: first.run.sessionId });
  };

  it('continues after a call with 5,000 nested brackets, and tells the model about it', async () => {
    const history = await survives([{ name: 'act', inputJson: `{"x":${nested(5_000)}}` }]);
    expect(contentOf(history)).toEqual([
      'not run: the arguments were not kept: nested deeper than 64 levels',
    ]);
    expect(JSON.stringify(history).length).toBeLessThan(2_000);
  });

  it.each<readonly [string, readonly ScriptedCall[]]>([
    ['longer than a million characters', [{ name: 'act', input: { x: 'y'.repeat(1_100_000) } }]],
    ['of 50,000 values', [{ name: 'act', input: { x: Array.from({ length: 50_000 }, () => 1) } }]],
    ['with half a character', [{ name: 'act', inputJson: '{"\\udc00":"\\ud800 \\u0000"}' }]],
    ['with the key of a prototype', [{ name: 'act', inputJson: '{"__proto__":{"constructor":1}}' }]],
    ['with invalid JSON', [{ name: 'act', inputJson: '{"x": [1, ' }]],
    ["with arguments that aren't an object", [{ name: 'act', inputJson: '[[1]]' }]],
    [
      'with one id twice',
      [
        { id: 'same', name: 'act' },
        { id: 'same', name: 'act', input: { n: 1 } },
      ],
    ],
    ['of an unknown tool with a name of odd characters', [{ name: 'ä'.repeat(3_000), input: {} }]],
    ['that come 200 at once', Array.from({ length: 200 }, (_, n) => ({ name: 'act', input: { n } }))],
  ])('continues after calls %s', async (_what, calls) => {
    await survives(calls);
  });

  it.each<readonly [string, unknown]>([
    ['half a character', { text: 'a\ud800b\u0000' }],
    ['only separators', { text: '\u001c\u0085' }],
    ['an invalid image', { text: 'x', images: [{ mimeType: 'image/png', base64: 'AAAA' }] }],
    ['an image of a wrong type', { text: 'x', images: [{ ...aPng, mimeType: 'image/svg+xml' }] }],
    ["images that aren't a list", { text: 'x', images: 7 }],
    [
      'an image that is too large',
      { text: 'x', images: [{ ...aPng, base64: aPng.base64.slice(0, 4).repeat(1_500_000) }] },
    ],
    ['deeply nested metadata', { text: 'x', metadata: { deep: JSON.parse(nested(5_000)) } }],
    ['no value', undefined],
  ])('continues after a result with %s', async (_what, output) => {
    await survives([{ name: 'act' }], () => output as ToolOutput);
  });

  it('continues after any generated calls and results', async () => {
    const perRun = 20;
    const seed = Number(process.env.PARLEY_SEED ?? Date.now() % 2 ** 31);
    await fc
      .assert(
        fc.asyncProperty(
          fc.array(aCall, { minLength: perRun, maxLength: perRun }),
          fc.array(anOutput, { minLength: 1 }),
          async (calls, outputs) => {
            let n = 0;
            await survives(calls, () => outputs[n++ % outputs.length] as ToolOutput);
          },
        ),
        {
          numRuns: inTotal / perRun,
          seed,
          endOnFailure: true,
        },
      )
      .catch((error: unknown) => {
        throw new Error(`with seed ${seed}`, { cause: error });
      });
    console.log(`poisoned history: ${inTotal} calls, seed ${seed}`);
  }, 600_000);

  describe('a history spoiled by an earlier version or by hand', () => {
    /** Stores a turn that no run of today would write. */
    const spoil = async (parts: readonly MessagePart[], result: readonly MessagePart[]) => {
      const conversation = unique('c');
      model.script(() => ({ text: 'Here I am.' }));
      await aWorker(store()).accept(aMessage({ conversation, text: 'go' }));
      const run = await aWorker(store()).claimRun(aLane(conversation).key, 1);
      const held = { laneKey: run.laneKey, epoch: run.epoch, runId: run.runId };
      const messageId = unique('message');
      const call = { callId: 'c1', name: 'act', input: '{}' };
      const finish: MessagePart = { type: 'finish', data: { reason: 'tool_use', time: 1 } };
      const message = {
        id: messageId,
        sessionId: run.sessionId,
        model: 'claude-opus-4-6',
        parts: [...parts, finish],
      };
      await store().write(commitToolTurn, { ...held, message, calls: [call] });
      const results = [{ callId: 'c1', isError: false, parts: result }];
      await store().write(storeToolResults, { ...held, messageId, results });
      await new Promise((resolve) => setTimeout(resolve, 5));
      return { conversation, sessionId: run.sessionId };
    };
    const call = (input: string): MessagePart => ({
      type: 'tool_call',
      data: { id: 'c1', name: 'act', input, finished: true },
    });
    const result = (content: string): MessagePart => ({
      type: 'tool_result',
      data: { tool_call_id: 'c1', name: 'act', content, is_error: false },
    });

    /** Resumes the spoilt run, sends another message, and returns how many requests were refused for each. */
    const goesOn = async ({ conversation }: { conversation: string }) => {
      const refusals = async (work: Promise<{ asked: AnthropicServer['requests'] }>) =>
        (await work).asked.filter(({ refusal }) => refusal !== undefined).length;
      const before = model.requests.length;
      await playNext(store(), aLane(conversation).key, { model: { ...provider(), requests: [] } });
      const first = model.requests.slice(before).filter(({ refusal }) => refusal !== undefined).length;
      const second = await refusals(say(conversation, 'and now?'));
      expect(await outcomes(conversation)).toEqual(['answered', 'answered']);
      return [first, second];
    };

    it('continues without arguments that no request can hold', async () => {
      const spoilt = await spoil([call(`{"x":${nested(5_000)}}`)], [result('fine')]);
      expect(await goesOn(spoilt)).toEqual([0, 0]);
    });

    it("continues without thinking blocks that the model doesn't know, after one refusal", async () => {
      const signature = 'anthropic/claude-opus-4-6\nforged';
      const thinking: MessagePart = { type: 'reasoning', data: { thinking: 'hm', signature } };
      const spoilt = await spoil([thinking, call('{"kept":1}')], [result('fine')]);
      expect(await goesOn(spoilt)).toEqual([1, 0]);
      const history = await store().read(readHistory, spoilt);
      expect(history.map(({ unsendable }) => unsendable)).toContain('thinking');
      expect(JSON.stringify(model.requests.at(-1)?.body)).toContain('kept');
    });

    it('continues if the platform refuses a message for reasons of its own', async () => {
      const spoilt = await spoil([call('{"forbidden":1}')], [result('fine')]);
      model.script((body) => {
        const at = body.messages.findIndex(({ content }) => JSON.stringify(content).includes('forbidden'));
        if (at === -1) return { text: 'Here I am.' };
        return {
          status: 400,
          errorType: 'invalid_request_error',
          message: `messages.${at}.content.0: no such thing`,
        };
      });
      expect(await goesOn(spoilt)).toEqual([0, 0]);
      expect(JSON.stringify(model.requests.at(-1)?.body)).toContain('could not be kept');
    });
  });
});

function contentOf(history: readonly AgentMessage[]): readonly string[] {
  return history.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : [])),
  );
}

const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 6 },
    fc.constantFrom<unknown>(null, true, 0, -1, 1e300, '', ' ', '\ud800', '\u0000', '\u202e'),
    fc.string({ unit: 'binary' }),
    fc.double(),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('constructor', 'type', '')),
      tie('json'),
      { maxKeys: 4 },
    ),
  ),
}));

/** Arguments that a model might write: JSON, nearly JSON, nested, cut off, or anything. */
const written = fc.oneof(
  json.map((value) => JSON.stringify(value)),
  fc.dictionary(fc.string(), json).map((value) => JSON.stringify(value)),
  fc.tuple(json, fc.nat({ max: 40 })).map(([value, at]) => JSON.stringify(value).slice(0, at)),
  fc
    .tuple(fc.integer({ min: 1, max: 6_000 }), fc.constantFrom(['[', ']'], ['{"a":', '}']))
    .map(([depth, [open, close]]) => `{"x":${open?.repeat(depth)}1${close?.repeat(depth)}}`),
  fc.constantFrom(
    '{"a":"\\ud800"}',
    '{"\\udfff\\u0000":1}',
    '{"__proto__":1}',
    'null',
    '[]',
    '"x"',
    '{} {}',
    '\ufeff{}',
  ),
  fc.string({ unit: 'binary' }),
);

const aCall: fc.Arbitrary<ScriptedCall> = fc.record(
  {
    name: fc.oneof(
      { weight: 5, arbitrary: fc.constant('act') },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1 }) },
    ),
    inputJson: written,
    id: fc.oneof(fc.uuid(), fc.constantFrom('same', 'a b', 'ü'), fc.string({ minLength: 1 })),
  },
  { requiredKeys: ['name', 'inputJson'] },
);

const anOutput = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => ({ text })),
  json.map((value) => ({ text: JSON.stringify(value), metadata: { value } })),
  json,
  fc.record({
    text: fc.string(),
    images: fc.array(fc.record({ mimeType: fc.string(), base64: fc.base64String() }), { maxLength: 12 }),
  }),
);

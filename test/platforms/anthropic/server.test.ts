import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { holds } from '../../support/holds.ts';
import { type AnthropicServer, startAnthropicServer } from './server.ts';

let server: AnthropicServer;
beforeAll(async () => {
  server = await startAnthropicServer({ mayRefuse: 'its refusals are what is tested' });
});
afterAll(() => server.close());
beforeEach(() => server.script(() => ({ text: 'ok' })));

const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown) => ({ role: 'assistant', content });
const hello = [user('hello')];
const toolUse = { type: 'tool_use', id: 'toolu_1', name: 'list', input: {} };
const toolResult = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'a' };
const schema = { type: 'object', properties: {} };

async function post(body: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2026-10-21',
      'x-api-key': 'test-key',
      ...headers,
    },
    body: JSON.stringify({ model: 'claude-sonnet-5-5', max_tokens: 100, messages: hello, ...body }),
  });
  const text = await response.text();
  return { status: response.status, text, headers: response.headers };
}

async function refusalOf(body: object, headers: Record<string, string> = {}) {
  const answer = await post(body, headers);
  const error = JSON.parse(answer.text).error ?? { type: 'none', message: 'accepted' };
  return `${answer.status} ${error.type}: ${error.message}`;
}

describe('what the platform refuses', () => {
  const cases: readonly (readonly [string, object, RegExp])[] = [
    ['an unknown field', { temprature: 1 }, /^400.*temprature: Extra inputs/],
    ['sampling settings, which API version 2026-10-21 removed', { temperature: 0 }, /^400.*temperature/],
    ['no max_tokens', { max_tokens: undefined }, /^400.*max_tokens: Field required/],
    ['max_tokens 0', { max_tokens: 0 }, /^400.*max_tokens/],
    ['max_tokens as text', { max_tokens: '5' }, /^400.*max_tokens.*integer/],
    ['max_tokens above the model', { max_tokens: 500_000 }, /^400.*max_tokens: 500000 > 128000/],
    ['a model that does not exist', { model: 'gpt-9' }, /^404 not_found_error/],
    ['no messages', { messages: [] }, /^400.*at least one message/],
    ['a first message of the assistant', { messages: [assistant('a'), user('b')] }, /^400.*first message/],
    ['a last message of the assistant', { messages: [user('a'), assistant('b')] }, /^400.*prefill/],
    ['a role twice in a row', { messages: [user('a'), user('b')] }, /^400.*alternate/],
    ['a role that does not exist', { messages: [{ role: 'tool', content: 'a' }] }, /^400.*role/],
    ['empty content', { messages: [user([])] }, /^400.*non-empty/],
    ['blank text', { messages: [user([{ type: 'text', text: ' \n' }])] }, /^400.*non-whitespace/],
    [
      'thinking of a person',
      { messages: [user([{ type: 'thinking', thinking: 'a', signature: 's' }])] },
      /^400.*not permitted/,
    ],
    [
      'an image type it cannot read',
      {
        messages: [
          user([{ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AA==' } }]),
        ],
      },
      /^400.*media_type/,
    ],
    [
      'a tool use that is not answered',
      { messages: [user('a'), assistant([toolUse]), user('b')] },
      /^400.*without `tool_result`/,
    ],
    ['a tool result nobody asked for', { messages: [user([toolResult])] }, /^400.*unexpected `tool_use_id`/],
    [
      'two results of one tool use',
      { messages: [user('a'), assistant([toolUse]), user([toolResult, toolResult])] },
      /^400.*single result/,
    ],
    [
      'text before tool results',
      { messages: [user('a'), assistant([toolUse]), user([{ type: 'text', text: 'x' }, toolResult])] },
      /^400.*come first/,
    ],
    [
      'a tool use id twice',
      {
        messages: [
          user('a'),
          assistant([toolUse]),
          user([toolResult]),
          assistant([toolUse]),
          user([toolResult]),
        ],
      },
      /^400.*ids must be unique/,
    ],
    [
      'tool input that is no object',
      { messages: [user('a'), assistant([{ ...toolUse, input: 'x' }]), user([toolResult])] },
      /^400.*dictionary/,
    ],
    [
      'thinking without a signature',
      {
        messages: [
          user('a'),
          assistant([
            { type: 'thinking', thinking: 't' },
            { type: 'text', text: 'b' },
          ]),
          user('c'),
        ],
      },
      /^400.*signature: Field required/,
    ],
    [
      'thinking with a made-up signature',
      {
        messages: [
          user('a'),
          assistant([
            { type: 'thinking', thinking: 't', signature: 'x.y' },
            { type: 'text', text: 'b' },
          ]),
          user('c'),
        ],
      },
      /^400.*Invalid `signature`/,
    ],
    [
      'a tool name with a space',
      { tools: [{ name: 'a b', input_schema: schema }] },
      /^400.*name: String should match/,
    ],
    [
      'two tools of one name',
      {
        tools: [
          { name: 'a', input_schema: schema },
          { name: 'a', input_schema: schema },
        ],
      },
      /^400.*unique/,
    ],
    [
      'a tool schema that is no object',
      { tools: [{ name: 'a', input_schema: { type: 'string' } }] },
      /^400.*'object'/,
    ],
    [
      'a union at the top of a tool schema',
      { tools: [{ name: 'a', input_schema: { ...schema, anyOf: [] } }] },
      /^400.*anyOf/,
    ],
    ['empty system text', { system: [{ type: 'text', text: '' }] }, /^400.*non-empty/],
    [
      'a fifth cache breakpoint',
      { system: Array(5).fill({ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }) },
      /^400.*maximum of 4.*Found 5/,
    ],
    [
      'a thinking budget on a model without budgets',
      { thinking: { type: 'enabled', budget_tokens: 2000 } },
      /^400.*not supported for this model/,
    ],
    [
      'a thinking budget that leaves no room',
      { model: 'claude-haiku-4-5', max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 2000 } },
      /^400.*greater than `thinking.budget_tokens`/,
    ],
    [
      'a thinking budget below 1024',
      { model: 'claude-haiku-4-5', max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 100 } },
      /^400.*1024/,
    ],
    [
      'block_binding without its beta header',
      { thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } } },
      /^400.*block_binding/,
    ],
  ];

  it.each(cases)('refuses %s', async (_, body, expected) => {
    expect(await refusalOf(body)).toMatch(expected);
  });

  it('refuses a wrong key and a request without a version', async () => {
    expect(await refusalOf({}, { 'x-api-key': 'stolen' })).toMatch(/^401 authentication_error/);
    expect(await refusalOf({}, { 'anthropic-version': '1999-01-01' })).toMatch(/^400.*anthropic-version/);
  });

  it('refuses a budgeted tool turn that does not begin with its thinking', async () => {
    const messages = [user('a'), assistant([toolUse]), user([toolResult])];
    const thinking = { type: 'enabled', budget_tokens: 1024 };
    const body = { model: 'claude-haiku-4-5', max_tokens: 2000, thinking, messages };
    expect(await refusalOf(body)).toMatch(/^400.*Expected `thinking`/);
  });

  it('refuses a prompt that is longer than the window', async () => {
    const small = await startAnthropicServer({ contextTokens: 50 });
    const long = { messages: [user('word '.repeat(100))] };
    const response = await fetch(`${small.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'anthropic-version': '2026-10-21',
        'x-api-key': 'test-key',
      },
      body: JSON.stringify({ model: 'claude-sonnet-5-5', max_tokens: 10, ...long }),
    });
    expect(JSON.parse(await response.text()).error.message).toMatch(
      /^prompt is too long: \d+ tokens > 50 maximum$/,
    );
    await small.close();
  });
});

describe('property: conversations', () => {
  const role = fc.constantFrom('user', 'assistant');

  it('accepts exactly the sequences of roles that alternate, begin and end with the person', async () => {
    const property = fc.asyncProperty(fc.array(role, { minLength: 1, maxLength: 7 }), async (roles) => {
      const alternates = roles.every((each, index) =>
        index % 2 === 0 ? each === 'user' : each === 'assistant',
      );
      const isFine = alternates && roles.length % 2 === 1;
      const answer = await post({ messages: roles.map((each) => ({ role: each, content: 'x' })) });
      expect(answer.status).toBe(isFine ? 200 : 400);
    });
    await holds(property, {
      numRuns: 2000,
      interruptAfterTimeLimit: 1500,
    });
  });

  it('accepts tool results exactly when they answer the calls before them, each once', async () => {
    const ids = fc.subarray(['a', 'b', 'c']);
    const property = fc.asyncProperty(ids, ids, async (asked, answered) => {
      const calls = asked.map((id) => ({ ...toolUse, id }));
      const results = answered.map((id) => ({ ...toolResult, tool_use_id: id }));
      const messages = [
        user('go'),
        assistant([{ type: 'text', text: 'x' }, ...calls]),
        user([...results, { type: 'text', text: 'y' }]),
      ];
      const answer = await post({ messages });
      expect(answer.status).toBe(asked.join() === answered.join() ? 200 : 400);
    });
    await holds(property, { numRuns: 500, interruptAfterTimeLimit: 1000 });
  });
});

describe('scripts', () => {
  it('refuses requests beyond the end of a script, so that a test notices them', async () => {
    server.script([{ text: 'one' }]);
    expect((await post({})).status).toBe(200);
    expect(await refusalOf({})).toMatch(/the script has 1 replies, this is request 2/);
  });
});

describe('prompt caching', () => {
  const big = 'stable '.repeat(600);
  const system = [{ type: 'text', text: big, cache_control: { type: 'ephemeral' } }];
  const usageOf = async (body: object) => JSON.parse((await post(body)).text).usage;

  it('writes a marked prefix to the cache once and reads it afterwards', async () => {
    const first = await usageOf({ system });
    const second = await usageOf({ system, messages: [user('another question')] });
    expect(first.cache_creation_input_tokens).toBeGreaterThan(1000);
    expect(second.cache_read_input_tokens).toBe(first.cache_creation_input_tokens);
    expect(second.cache_creation_input_tokens).toBe(0);
  });

  it('reads nothing from the cache when the prefix has changed', async () => {
    await usageOf({ system });
    const changed = [{ type: 'text', text: `!${big}`, cache_control: { type: 'ephemeral' } }];
    expect((await usageOf({ system: changed })).cache_read_input_tokens).toBe(0);
  });

  it('reads from the cache what ended shortly before a mark, but nothing earlier', async () => {
    const text = (said: string) => ({ type: 'text', text: said });
    const marked = { ...text(big), cache_control: { type: 'ephemeral' } };
    const asked = (blocks: number) => ({
      messages: [
        user([
          text('first'),
          { ...marked, cache_control: undefined },
          ...Array(blocks).fill(text('more')),
          marked,
        ]),
      ],
    });
    const written = await usageOf({ messages: [user([text('first'), marked])] });
    expect((await usageOf(asked(17))).cache_read_input_tokens).toBe(written.cache_creation_input_tokens);
    expect((await usageOf(asked(25))).cache_read_input_tokens).toBe(0);
  });
});

it('fails to close after a refusal that no test expected', async () => {
  const strict = await startAnthropicServer();
  const headers = {
    'content-type': 'application/json',
    'anthropic-version': '2026-10-21',
    'x-api-key': 'test-key',
  };
  const body = JSON.stringify({ model: 'claude-sonnet-5-5', max_tokens: 100, messages: [] });
  await fetch(`${strict.url}/v1/messages`, { method: 'POST', headers, body });
  await expect(strict.close()).rejects.toThrow('at least one message');
});

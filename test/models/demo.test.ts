import { describe, expect, it } from 'vitest';
import type { LlmMessage, ModelEvent, ToolSpec, UserBlock } from '#contracts/model.ts';
import { createLoopGuard } from '../../src/agent/loop-guard.ts';
import { fileSchema } from '../../src/config/schema.ts';
import { createDemoProvider } from '../../src/models/demo.ts';
import { subtaskPrompt, synthesisPrompt, taskPrompt } from '../../src/store/tasks/task-texts.ts';
import { delegateInputSchema } from '../../src/subagents/delegate-input.ts';
import { aPatientClock, aRequest, aUserMessage, eventsOf, failureIn, listTool, textIn } from './builders.ts';

const statusTool = {
  name: 'session_status',
  description: '',
  inputSchema: { type: 'object', properties: {} },
};

function aDemo() {
  let count = 0;
  const newId = () => {
    count += 1;
    return String(count);
  };
  const clock = aPatientClock();
  return { clock, demo: createDemoProvider({ clock, newId }) };
}

const say = (text: string, tools: readonly ToolSpec[] = [listTool]) =>
  eventsOf(aDemo().demo, aRequest({ messages: [aUserMessage(text)], tools }));
const callIn = (events: readonly ModelEvent[]) => events.find((event) => event.type === 'tool_use_start');

/** Returns the conversation after the demo's turn and the result of its call. */
function continueRun(
  messages: readonly LlmMessage[],
  events: readonly ModelEvent[],
  steer?: string,
): LlmMessage[] {
  const call = callIn(events);
  if (call === undefined) throw new Error('the demo called no tool');
  const result = { type: 'tool_result' as const, toolCallId: call.id, content: 'notes.md', isError: false };
  return [
    ...messages,
    { role: 'assistant', content: [{ type: 'tool_use', id: call.id, name: call.name, input: {} }] },
    { role: 'user', content: steer === undefined ? [result] : [result, { type: 'text', text: steer }] },
  ];
}

const aResult = (id: string, state = 'done') => ({ id, agent: 'main', state, error: null, result: '' });

describe('the demo model', () => {
  it("labels the demo model's answers and repeats the message word by word", async () => {
    const { demo, clock } = aDemo();
    const events = await eventsOf(demo, aRequest({ messages: [aUserMessage('good morning')] }));
    expect(textIn(events)).toMatch(/^\[demo model\].*“good morning”/);
    expect(clock.waits.length).toBe(events.filter((event) => event.type === 'content_delta').length);
    expect(new Set(clock.waits)).toEqual(new Set([30]));
    expect(events.at(-1)).toMatchObject({ type: 'complete', finish: 'end_turn', model: 'demo' });
  });

  it('lists what the demo model can show', async () => {
    expect(textIn(await say('help'))).toMatch(/show a tool[\s\S]*work[\s\S]*spawn two[\s\S]*be silent/);
  });

  it.each([
    ['ask me', 'write', '{"path":"demo-note.md"'],
    ['send me a file', 'write', '{"path":"demo-file.md"'],
    ['read a page', 'web_fetch', '{"url":"http://127.0.0.1:7411/page/about.html"}'],
    ['read https://example.org/a', 'web_fetch', '{"url":"https://example.org/a"}'],
    ['use weather Oslo', 'weather', '{"place":"Oslo"}'],
    ['use weather {"place":"Oslo","days":3}', 'weather', '{"place":"Oslo","days":3}'],
    ['use roll 20', 'roll', '{"sides":20}'],
    ['use find 20', 'find', '{"text":"20"}'],
  ])('calls the tool that “%s” asks for', async (said, name, json) => {
    const tools = ['write', 'web_fetch', 'weather'].map((each) => ({
      name: each,
      description: 'It also reads from: 127.0.0.1:7411.',
      inputSchema: { type: 'object', required: ['place'], properties: {} },
    }));
    for (const [own, member, type] of [
      ['roll', 'sides', 'integer'],
      ['find', 'text', 'string'],
    ] as const)
      tools.push({
        name: own,
        description: '',
        inputSchema: { type: 'object', required: [member], properties: { [member]: { type } } },
      });
    const events = await say(said, tools);
    expect(callIn(events)).toMatchObject({ name });
    expect(JSON.stringify(events)).toContain(JSON.stringify(json).slice(1, -1));
    expect(callIn(await say(said, []))).toBeUndefined();
  });

  it('writes a file, sends it with a message, and says so', async () => {
    const tools = ['write', 'message'].map((name) => ({ ...statusTool, name }));
    const { demo } = aDemo();
    const turn = (messages: readonly LlmMessage[]) => eventsOf(demo, aRequest({ messages, tools }));
    const asked = [aUserMessage('please send me a file')];
    const first = await turn(asked);
    const second = await turn(continueRun(asked, first));
    expect(callIn(second)).toMatchObject({ name: 'message' });
    expect(JSON.stringify(second)).toContain(String.raw`\"files\":[\"demo-file.md\"]`);
    const last = await turn(continueRun(continueRun(asked, first), second));
    expect(textIn(last)).toContain('That was the file.');
  });

  it('stays silent on request', async () => {
    expect(textIn(await say('please be silent'))).toBe('NO_REPLY');
  });

  it('shows any harmless tool that it is offered, and its result', async () => {
    expect(callIn(await say('show a tool', [statusTool]))).toMatchObject({ name: 'session_status' });
    const messages = [aUserMessage('show me a tool')];
    const events = await eventsOf(aDemo().demo, aRequest({ messages, tools: [listTool, statusTool] }));
    expect(callIn(events)).toMatchObject({ name: 'list' });
    expect(events.find((event) => event.type === 'tool_use_delta')).toMatchObject({ json: '{"path":"."}' });
    expect(
      textIn(await eventsOf(aDemo().demo, aRequest({ messages: continueRun(messages, events) }))),
    ).toContain('notes.md');
  });

  it('gives two sub-agents a part each and combines both results in one answer', async () => {
    const spawnTool = { ...statusTool, name: 'sessions_spawn' };
    const messages = [aUserMessage('please spawn two')];
    const events = await eventsOf(aDemo().demo, aRequest({ messages, tools: [spawnTool] }));
    const calls = events.flatMap((event) => (event.type === 'tool_use_start' ? [event] : []));
    expect(calls.map(({ name }) => name)).toEqual(['sessions_spawn', 'sessions_spawn']);
    const [one = '', two = ''] = await Promise.all(
      [1, 2].map(async (part) => textIn(await say(`Demo part ${part} of 2.`, []))),
    );
    const results = [one, two].map((content, index) => ({
      ...{ type: 'tool_result' as const, toolCallId: calls[index]?.id ?? '', isError: false },
      content: `[Sub-agent "part": completed.]\n<<<untrusted>>>\n${content}\n<<<end untrusted>>>`,
    }));
    const asked: LlmMessage = {
      role: 'assistant',
      content: calls.map(({ id, name }) => ({ type: 'tool_use', id, name, input: {} })),
    };
    const after = [...messages, asked, { role: 'user' as const, content: results }];
    const answer = await eventsOf(aDemo().demo, aRequest({ messages: after, tools: [spawnTool] }));
    expect(textIn(answer)).toMatch(/Both sub-agents have ended:\n- Part 1 is done\.\n- Part 2 is done\.$/);
    const stopped = results.map((result, at) => ({
      ...result,
      ...(at === 0 && { isError: true, content: '[Sub-agent "part 1": stopped.]\n[demo model] so far' }),
    }));
    const rest = [...messages, asked, { role: 'user' as const, content: stopped }];
    expect(textIn(await eventsOf(aDemo().demo, aRequest({ messages: rest, tools: [spawnTool] })))).toMatch(
      /- \[Sub-agent "part 1": stopped\.\]\n- Part 2 is done\.$/,
    );
    expect(callIn(await say('spawn two'))).toBeUndefined();
  });

  it('delegates a diamond of four subtasks, and ends its turn when they were accepted', async () => {
    const roster = 'Agents:\n- main: yourself, as a sub-agent\n- clerk\n';
    const tools = [{ ...statusTool, name: 'delegate', description: roster }];
    const messages = [aUserMessage('Please delegate green tea')];
    const events = await eventsOf(aDemo().demo, aRequest({ messages, tools }));
    const json = events.flatMap((event) => (event.type === 'tool_use_delta' ? [event.json] : [])).join('');
    const { title, subtasks } = delegateInputSchema.parse(JSON.parse(json));
    expect(title).toBe('A text about green tea');
    expect(subtasks.map(({ id, agent, dependsOn }) => [id, agent, dependsOn])).toEqual([
      ['outline', 'main', []],
      ['facts', 'clerk', ['outline']],
      ['views', 'main', ['outline']],
      ['draft', 'self', ['facts', 'views']],
    ]);
    const after = async (content: string) => {
      const [asked, result] = continueRun([], events);
      const results = result?.content.map((block) => ({ ...block, content })) as UserBlock[];
      const all: LlmMessage[] = [...messages, ...(asked ? [asked] : []), { role: 'user', content: results }];
      return eventsOf(aDemo().demo, aRequest({ messages: all, tools }));
    };
    expect(textIn(await after('{"status":"accepted"}'))).toContain('The answer comes when all have ended.');
    expect(textIn(await after('{"status":"refused"}'))).toContain('That was refused: {"status":"refused"}');
    expect(textIn(await say('delegate tea', []))).toContain("I can't delegate here");
    const sent = taskPrompt({ taskId: 't1', subtaskId: 'main', from: 'billing' }, 'delegate tea');
    expect(textIn(await say(sent, tools))).toContain("I'm breaking that into four subtasks");
  });

  it('answers a subtask after two slow steps, and a task from the results', async () => {
    const upstream = [{ ...aResult('outline'), result: '[demo model] What is “tea”?' }];
    const subtask = { taskId: 't1', id: 'facts', try: 1, from: 'main', instructions: 'About “tea”.' };
    const { demo, clock } = aDemo();
    let messages = [aUserMessage(subtaskPrompt({ ...subtask, expected: null, upstream }))];
    let said = '';
    for (let step = 1; step <= 3; step += 1) {
      const events = await eventsOf(demo, aRequest({ messages, tools: [listTool] }));
      if (callIn(events)) messages = continueRun(messages, events);
      said = textIn(events);
    }
    expect(said).toMatch(/^\[demo model\] “tea” is what you've asked about.* I've read “outline”\.$/);
    expect(clock.waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(2000);

    const results = [{ ...aResult('facts'), result: said }, aResult('draft', 'skipped')];
    const task = { id: 't1', title: 'A text about tea', results };
    expect(textIn(await say(synthesisPrompt({ ...task, error: null })))).toMatch(
      /A text about tea, made from these results:\n- facts \(main\): “tea” is what.*\n- draft \(main\): skipped$/,
    );
    expect(textIn(await say(synthesisPrompt({ ...task, error: 'draft: it failed' })))).toContain(
      'A text about tea failed: draft: it failed. This is what there is:\n- facts',
    );
  });

  it('does a part in three slow steps, which leaves time to steer or stop it', async () => {
    const { demo, clock } = aDemo();
    let messages: LlmMessage[] = [aUserMessage('Demo part 2 of 2.')];
    const said: string[] = [];
    for (let step = 1; step <= 4; step += 1) {
      const events = await eventsOf(demo, aRequest({ messages, tools: [listTool] }));
      said.push(/step \d of \d|Part 2 is done/.exec(textIn(events))?.[0] ?? '');
      if (callIn(events)) messages = continueRun(messages, events);
    }
    expect(said).toEqual(['step 1 of 3', 'step 2 of 3', 'step 3 of 3', 'Part 2 is done']);
    expect(clock.waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(3000);
  });

  it('says that it has no tool to show if none is offered', async () => {
    const events = await say('show a tool', []);
    expect(callIn(events)).toBeUndefined();
    expect(textIn(events)).toContain('I have no tool to show here');
  });

  it.each([
    ['two tools', [listTool, statusTool], 8],
    ['one tool', [statusTool], 4],
  ] as const)('works to its end with %s without tripping the loop guard', async (_name, tools, count) => {
    const { demo } = aDemo();
    const guard = createLoopGuard(fileSchema.parse({}).run.repeatedCalls);
    let messages: LlmMessage[] = [
      aUserMessage('hi'),
      { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
      aUserMessage('work'),
    ];
    const steps: string[] = [];
    for (let n = 0; n < count + 2; n += 1) {
      const events = await eventsOf(demo, aRequest({ messages, tools }));
      steps.push(/Step \d of \d|Done: all \d/.exec(textIn(events))?.[0] ?? '');
      const call = callIn(events);
      if (call === undefined) break;
      const input = events.find((event) => event.type === 'tool_use_delta')?.json ?? '';
      expect(guard.admit({ name: call.name, input })).toBe(true);
      messages = continueRun(messages, events);
    }
    const before = Array.from({ length: count - 1 }, (_, index) => `Step ${index + 1} of ${count}`);
    expect(steps).toEqual([...before, `Done: all ${count}`]);
  });

  it('quotes a steer at its next step and stops its task', async () => {
    const { demo } = aDemo();
    const messages = [aUserMessage('work')];
    const first = await eventsOf(demo, aRequest({ messages, tools: [listTool] }));
    const steered = await eventsOf(
      demo,
      aRequest({ messages: continueRun(messages, first, 'what about lunch?'), tools: [listTool] }),
    );
    expect(textIn(steered)).toContain('“what about lunch?”');
    expect(steered.at(-1)).toMatchObject({ finish: 'end_turn' });
  });

  it('gives every call a different id', async () => {
    const { demo } = aDemo();
    const request = aRequest({ messages: [aUserMessage('work')], tools: [listTool] });
    const ids = [await eventsOf(demo, request), await eventsOf(demo, request)].map(
      (events) => callIn(events)?.id,
    );
    expect(new Set(ids).size).toBe(2);
  });

  it('stops at once when aborted', async () => {
    const abort = new AbortController();
    const events: ModelEvent[] = [];
    for await (const event of aDemo().demo.stream(aRequest(), abort.signal)) {
      events.push(event);
      if (event.type === 'content_delta') abort.abort();
    }
    expect(failureIn(events)?.kind).toBe('aborted');
    expect(events.filter((event) => event.type === 'content_delta')).toHaveLength(1);
  });
});

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AgentMessage, type FinishReason, finishReasonOf } from '#contracts/message.ts';
import type { Tool } from '#contracts/tool.ts';
import { agentLoopResume } from '../../src/agent/loop.ts';
import type { AgentLoopConfig, Permit } from '../../src/agent/loop-config.ts';
import type { AskedCall, CallEntry } from '../../src/agent/resumption.ts';
import { aConfig, aContext, aMessage, aTool, type ConfigChanges, userSays } from './support/builders.ts';
import { grammarErrors } from './support/event-grammar.ts';
import { endOf, noSignal, only, play, playBatch, resultsOf } from './support/run-loop.ts';
import { says, scriptedModel } from './support/scripted-model.ts';

const inputSchema = z.object({ command: z.string().default('ls') });

/** Returns a tool that records the commands it has run. */
function shell(ran: string[], changes: Partial<Tool<{ command: string }>> = {}): Tool {
  return aTool('shell', {
    inputSchema,
    execute: async (input) => ({ text: `${ran.push(inputSchema.parse(input).command)}` }),
    ...(changes as Partial<Tool>),
  });
}

/** Permits as `answer` says; asks about any other tool's calls. */
function asking(answer: Permit = 'ask', name = 'shell'): Pick<AgentLoopConfig, 'permit'> {
  return { permit: async ({ call, isApproved }) => (call.name !== name || isApproved ? 'allowed' : answer) };
}

const call = (id: string, command?: string, name = 'shell') => ({
  id,
  name,
  input: command === undefined ? {} : { command },
});

async function questionsOf(
  calls: Parameters<typeof playBatch>[1],
  tools: readonly Tool[],
  changes: ConfigChanges,
) {
  const played = await playBatch(tools, calls, changes);
  return {
    ...played,
    questions: only(played.events, 'tool_execution_asked').map(({ question }) => question),
  };
}

type Left = {
  readonly tools: readonly Tool[];
  readonly calls: readonly ReturnType<typeof call>[];
  readonly asked: ReadonlyMap<string, AskedCall>;
  readonly behind?: readonly AgentMessage[];
  readonly changes?: ConfigChanges;
};

/** Resumes a run whose last message made `calls`, of which some were asked about. */
async function resume({ tools, calls, asked, behind = [], changes = {} }: Left) {
  const message = aMessage(
    'assistant',
    'a',
    ...calls.map(({ id, name, input }) => ({
      type: 'tool_call' as const,
      data: { id, name, input: JSON.stringify(input), finished: true },
    })),
    { type: 'finish', data: { reason: 'tool_use' satisfies FinishReason, time: 0 } },
  );
  const entries = calls.map(({ id: callId }): CallEntry => {
    const question = asked.get(callId);
    return question === undefined
      ? { callId, messageId: 'a', state: 'fresh' }
      : { callId, messageId: 'a', state: 'asked', asked: question };
  });
  const model = scriptedModel(says('done'));
  const context = aContext(tools, [userSays('p', 'go'), message, ...behind]);
  const config = aConfig({ ...asking(), ...changes, model });
  const played = await play(agentLoopResume(context, entries, config, noSignal()));
  expect(grammarErrors(played.events)).toEqual([]);
  const [turn] = only(played.events, 'turn_end');
  return {
    ...played,
    model,
    results: resultsOf(played.messages),
    finish: turn && finishReasonOf(turn.message.parts),
    asks: only(played.events, 'tool_execution_asked').map(({ question }) => question.callId),
  };
}

/** Asks about one call and returns the question as it would be stored, with this verdict. */
async function asked(verdict: AskedCall['verdict'], command = 'ls', tool = shell([])): Promise<AskedCall> {
  const { questions } = await questionsOf([call('1', command)], [tool], asking());
  const [question] = questions;
  if (question === undefined) throw new Error('nobody was asked');
  const { input, digest } = question;
  return { verdict, input, digest };
}

describe('a call that a person has to approve', () => {
  it('asks with the checked arguments, and parks the run without starting the call', async () => {
    const ran: string[] = [];
    const { questions, events, results } = await questionsOf([call('1')], [shell(ran)], asking());
    expect(questions).toEqual([
      {
        callId: '1',
        tool: 'shell',
        input: '{}',
        shown: '{\n "command": "ls"\n}',
        digest: expect.stringMatching(/^[0-9a-f]{64}$/),
        authority: 'guest',
      },
    ]);
    expect([endOf(events).reason, ran, results]).toEqual(['parked', [], []]);
  });

  it('stops a sequential batch at the call to approve, behind the results of earlier calls', async () => {
    const ran: string[] = [];
    const other = aTool('other');
    const calls = [call('1', 'a', 'other'), call('2', 'b'), call('3', 'c', 'other')];
    const { questions, results } = await questionsOf(calls, [shell(ran), other], asking());
    expect(questions.map(({ callId }) => callId)).toEqual(['2']);
    expect(results).toEqual(['1: other ran']);
  });

  it('starts no call of a parallel batch before each that needs an approval is asked about', async () => {
    const ran: string[] = [];
    const other = aTool('other', { parallelSafe: true });
    const calls = [call('1', 'a', 'other'), call('2', 'b'), call('3', 'c'), call('4', 'd', 'nothing')];
    const { questions, results, events } = await questionsOf(
      calls,
      [shell(ran, { parallelSafe: true }), other],
      asking(),
    );
    expect(questions.map(({ callId }) => callId)).toEqual(['2', '3']);
    expect(only(events, 'tool_execution_prepared')).toEqual([]);
    expect(results).toEqual(['4: unknown tool: nothing']);
  });

  it('asks about the arguments that a hook has written, and runs the call with them', async () => {
    const beforeToolCall = async () => ({ kind: 'go', input: { command: 'ls -l' } }) as const;
    const { questions } = await questionsOf([call('1', 'ls')], [shell([])], { ...asking(), beforeToolCall });
    expect(questions[0]).toMatchObject({ input: '{"command":"ls -l"}', shown: '{\n "command": "ls -l"\n}' });
    const ran: string[] = [];
    await playBatch([shell(ran)], [call('1', 'ls')], { beforeToolCall });
    expect(ran).toEqual(['ls -l']);
  });

  it('asks if a hook demands it, whatever the policy allows', async () => {
    const beforeToolCall = async () => ({ kind: 'ask' }) as const;
    const { questions } = await questionsOf([call('1')], [shell([])], {
      ...asking('allowed'),
      beforeToolCall,
    });
    expect(questions).toHaveLength(1);
  });

  it('refuses a call if the arguments that a hook wrote are invalid', async () => {
    const beforeToolCall = async () => ({ kind: 'go', input: { command: 7 } }) as const;
    const { results } = await playBatch([shell([])], [call('1')], { beforeToolCall });
    expect(results[0]).toContain('1: invalid input for shell, changed by a hook: ');
  });

  it.each([
    ['longer than one message', `echo ${'x'.repeat(1_200)}`],
    ['of more lines than anyone reads', `ls${'\n'.repeat(40)}rm -r .`],
  ])('refuses a call without a question if its description is %s', async (_, command) => {
    const tool = shell([], { describe: (input) => input.command });
    const { questions, results } = await questionsOf([call('1', command)], [tool], asking());
    expect(questions).toEqual([]);
    expect(results[0]).toContain('too long to be shown whole');
  });

  it('shows invisible characters, and those that reorder text', async () => {
    const tool = shell([], { describe: (input) => input.command });
    const { questions } = await questionsOf([call('1', 'a\u202eb\u200b\u00a0\r\tß\nц')], [tool], asking());
    expect(questions[0]?.shown).toBe('a\\u{202e}b\\u{200b}\\u{a0}\\u{d}\\u{9}ß\nц');
  });

  it('refuses a call that its tool fails to describe', async () => {
    const tool = shell([], { describe: () => raise() });
    const { results } = await playBatch([tool], [call('1')], asking());
    expect(results).toEqual(['1: not run: it could not be checked (Error: no words)']);
  });
});

function raise(): never {
  throw new Error('no words');
}

describe('a resumed call that a person was asked about', () => {
  it.each([
    ['approved', ['ls'], '1: 1', 'tool_use'],
    ['denied', [], '1: permission denied', 'permission_denied'],
    ['expired', [], '1: permission denied: nobody answered the question in time', 'permission_denied'],
    ['void', [], '1: cancelled', 'tool_use'],
  ] as const)('runs a call only if it was approved: %s', async (verdict, commands, result, finish) => {
    const ran: string[] = [];
    const calls = [call('1', 'ls')];
    const played = await resume({
      tools: [shell(ran)],
      calls,
      asked: new Map([['1', await asked(verdict)]]),
    });
    expect(ran).toEqual(commands);
    expect([played.results, played.finish]).toEqual([[result], finish]);
  });

  it('asks again while nobody has decided', async () => {
    const ran: string[] = [];
    const open = new Map([['1', await asked('open')]]);
    const played = await resume({ tools: [shell(ran)], calls: [call('1', 'ls')], asked: open });
    expect([played.asks, endOf(played.events).reason, ran]).toEqual([['1'], 'parked', []]);
  });

  it("doesn't run a call whose description has changed since it was approved", async () => {
    const ran: string[] = [];
    const moved = shell(ran, { describe: (input) => `in /elsewhere: ${input.command}` });
    const approved = new Map([['1', await asked('approved')]]);
    const { results } = await resume({ tools: [moved], calls: [call('1', 'ls')], asked: approved });
    expect([results, ran]).toEqual([['1: not run: it would no longer do what was approved'], []]);
  });

  it('runs a call with the arguments that were approved, not with those of the message', async () => {
    const ran: string[] = [];
    const approved = new Map([['1', await asked('approved', 'ls -l')]]);
    await resume({ tools: [shell(ran)], calls: [call('1', 'rm -r .')], asked: approved });
    expect(ran).toEqual(['ls -l']);
  });

  it('denies an approved call if the person who caused it has lost the right meanwhile', async () => {
    const ran: string[] = [];
    const approved = new Map([['1', await asked('approved')]]);
    const permit = async () => 'revoked' as const;
    const played = await resume({
      tools: [shell(ran)],
      calls: [call('1')],
      asked: approved,
      changes: { permit },
    });
    expect([played.results, played.finish, ran]).toEqual([
      ['1: permission denied: the person who asked for this may no longer do so'],
      'permission_denied',
      [],
    ]);
  });

  it('passes an approved call to no hook again', async () => {
    const ran: string[] = [];
    const approved = new Map([['1', await asked('approved')]]);
    const beforeToolCall = async () => ({ kind: 'ask' }) as const;
    await resume({ tools: [shell(ran)], calls: [call('1')], asked: approved, changes: { beforeToolCall } });
    expect(ran).toEqual(['ls']);
  });

  it('runs an approved call even if a message arrived meanwhile, which skips those behind it', async () => {
    const ran: string[] = [];
    const approved = new Map([['1', await asked('approved')]]);
    const { results } = await resume({
      tools: [shell(ran), aTool('other')],
      calls: [call('1', 'ls'), call('2', 'b', 'other')],
      asked: approved,
      behind: [userSays('p2', 'never mind the rest')],
    });
    expect([ran, results]).toEqual([['ls'], ['1: 1', '2: skipped: a new message arrived']]);
  });

  it('starts no call of a parallel batch of which one was denied', async () => {
    const ran: string[] = [];
    const parallelSafe = true;
    const { results, finish } = await resume({
      tools: [shell(ran, { parallelSafe }), aTool('other', { parallelSafe })],
      calls: [call('1', 'ls'), call('2', 'ls'), call('3', 'c', 'other')],
      asked: new Map([
        ['1', await asked('approved')],
        ['2', await asked('denied')],
      ]),
    });
    expect([ran, finish]).toEqual([[], 'permission_denied']);
    expect(results).toEqual(['1: cancelled', '2: permission denied', '3: cancelled']);
  });

  it.each([
    ['approved', true],
    ['allowed by a rule that asks by now', false],
  ])('runs a call again that had started, without another question: %s', async (_, wasAsked) => {
    const ran: string[] = [];
    const question = wasAsked ? await asked('approved', 'ls -l') : undefined;
    const message = aMessage(
      'assistant',
      'a',
      { type: 'tool_call', data: { id: '1', name: 'shell', input: '{"command":"ls -l"}', finished: true } },
      { type: 'finish', data: { reason: 'tool_use', time: 0 } },
    );
    const entry: CallEntry = {
      ...{ callId: '1', messageId: 'a', state: 'started' },
      ...(question && { asked: question }),
    };
    const beforeToolCall = async () => ({ kind: 'ask' }) as const;
    const config = aConfig({ ...asking(), beforeToolCall, model: scriptedModel(says('done')) });
    const context = aContext([shell(ran)], [userSays('p', 'go'), message]);
    const { events } = await play(agentLoopResume(context, [entry], config, noSignal()));
    expect([ran, only(events, 'tool_execution_asked')]).toEqual([['ls -l'], []]);
  });
});

import { describe, expect, it } from 'vitest';
import { textOf } from '#contracts/message.ts';
import type { ModelEvent, ModelRequest } from '#contracts/model.ts';
import { agentLoop } from '../../src/agent/loop.ts';
import { isEmptyAnswer } from '../../src/replies/reply-pipeline.ts';
import {
  aConfig,
  aContext,
  type ConfigChanges,
  liveInbox,
  someLimits,
  userSays,
} from './support/builders.ts';
import { grammarErrors } from './support/event-grammar.ts';
import { endOf, noSignal, only, play } from './support/run-loop.ts';
import { completes, type Play, says, scriptedModel, writesCall } from './support/scripted-model.ts';

const thinks: readonly ModelEvent[] = [{ type: 'thinking_delta', thinking: 'hm', signature: 's' }];
const breaks: ModelEvent = {
  type: 'error',
  failure: { kind: 'failed', detail: 'the stream broke', retry: { kind: 'later' } },
};
const begins: readonly ModelEvent[] = [{ type: 'content_start' }, { type: 'content_delta', text: 'Once' }];

async function runWith(...plays: readonly Play[]) {
  return runShowing(undefined, ...plays);
}

async function runShowing(isShown: boolean | undefined, ...plays: readonly Play[]) {
  const model = scriptedModel(...plays);
  const config = aConfig({
    model,
    isEmptyAnswer: (text) => isEmptyAnswer(text, ['chat']),
    ...(isShown !== undefined && { isShown: () => isShown }),
  });
  const { events } = await play(
    agentLoop([userSays('u', 'hello')], aContext(), config, new AbortController().signal),
  );
  expect(grammarErrors(events)).toEqual([]);
  const answer = only(events, 'message_end').find(({ message }) => message.role === 'assistant');
  return {
    asked: model.requests.length,
    text: textOf(answer?.message.parts ?? []),
    cost: answer?.cost,
    end: endOf(events),
  };
}

describe('a model that is asked once more', () => {
  it.each<readonly [string, Play]>([
    ['says nothing', [completes('end_turn')]],
    ['only thinks', [...thinks, completes('end_turn')]],
    ['writes white space', says(' \n\t ')],
    ['writes only invisible characters', says('\u200b\u202e\u0007\ufeff')],
    ['writes only hidden text', says('<think>a thought without an end')],
    ['breaks off after its thinking', [...thinks, breaks]],
    [
      'breaks off after white space',
      [{ type: 'content_start' }, { type: 'content_delta', text: '\n' }, breaks],
    ],
  ])('asks the model once more if it %s', async (_what, nothing) => {
    expect(await runWith(nothing, says('Hello.'))).toMatchObject({ asked: 2, text: 'Hello.' });
  });

  it('asks once more after words were cut off, unless somebody may have seen them', async () => {
    const words = [...begins, breaks];
    expect(await runShowing(false, words, says('Hello.'))).toMatchObject({ asked: 2, text: 'Hello.' });
    expect(await runShowing(false, words, words, says('Hello.'))).toMatchObject({ asked: 2, text: 'Once' });
    expect(await runShowing(true, words, says('Hello.'))).toMatchObject({ asked: 1, text: 'Once' });
    const calls = [...writesCall({ id: '1', name: 'act' }).slice(0, 2), breaks];
    expect(await runShowing(false, calls, says('Hello.'))).toMatchObject({ asked: 1 });
  });

  it("doesn't ask a third time after two empty answers, and counts both calls", async () => {
    const empty = [completes('end_turn')];
    const { asked, text, cost, end } = await runWith(empty, empty, says('too late'));
    expect({ asked, text, reason: end.reason }).toEqual({ asked: 2, text: '', reason: 'natural' });
    expect(cost).toBe(2 * 7);
  });

  it.each<readonly [string, Play]>([
    ['breaks off after a word', [...begins, breaks]],
    ['breaks off in a call', [...writesCall({ id: '1', name: 'act' }).slice(0, 2), breaks]],
    ['fails before it writes anything', [breaks]],
    ['refuses', [...thinks, { type: 'error', failure: { kind: 'refused', detail: 'no' } }]],
  ])("doesn't ask again if the model %s", async (_what, nothing) => {
    const { asked, end } = await runWith(nothing, says('Hello.'));
    expect({ asked, reason: end.reason }).toEqual({ asked: 1, reason: 'model_error' });
  });

  it.each<readonly [string, Play]>([
    ['chooses silence', says('NO_REPLY')],
    ['reaches its length limit', [...thinks, completes('max_tokens')]],
  ])("doesn't ask again after an answer in which the model %s", async (_what, play) => {
    expect((await runWith(play, says('Hello.'))).asked).toBe(1);
  });
});

describe('a message that arrives during a model call', () => {
  /** The message arrives at the first call's event `at`; `said` is everything that the call would send. */
  async function arriving(at: number, said: readonly ModelEvent[], changes: ConfigChanges = {}) {
    const inbox = liveInbox();
    let tell = () => {};
    const first = async function* (_request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
      for (const [index, event] of [...said, completes('end_turn')].entries()) {
        if (index === at) {
          inbox.arrive(userSays('late', 'and this'));
          tell();
          // Ends with the abort if the call is given up; otherwise the model continues.
          await new Promise((resolve) => {
            setImmediate(resolve);
            signal.addEventListener('abort', resolve, { once: true });
          });
        }
        yield event;
      }
    };
    const model = scriptedModel(first, says('Both.'));
    const config = aConfig({
      model,
      isShown: () => false,
      getSteeringMessages: inbox.poll,
      onArrival: (listener) => {
        tell = listener;
        return () => {
          tell = () => {};
        };
      },
      ...changes,
    });
    const { events, messages } = await play(
      agentLoop([userSays('u', 'hello')], aContext(), config, noSignal()),
    );
    expect(grammarErrors(events)).toEqual([]);
    const asked = model.requests.map(({ messages: sent }) =>
      sent.reduce((sum, { content }) => sum + content.length, 0),
    );
    return { asked, said: messages.map(({ role, parts }) => `${role}: ${textOf(parts)}`) };
  }
  const oneTurn = { ...someLimits, turns: 1 };
  const bothAnswered = ['user: hello', 'user: and this', 'assistant: Both.'];

  it.each([
    ['before the model writes anything', 0, says('One.').slice(0, 3)],
    ['between its thoughts', 1, [...thinks, ...thinks, ...says('One.').slice(0, 3)]],
  ])(
    'gives the call up for a message that arrives %s, and one answer covers both',
    async (_when, at, said) => {
      const { asked, said: heard } = await arriving(at, said);
      expect(asked).toEqual([1, 2]);
      expect(heard).toEqual(bothAnswered);
    },
  );

  it.each([
    ['after its first word', 2, [...begins], {}],
    ['when somebody has seen a preview', 1, [...thinks, ...begins], { isShown: () => true }],
    ['in the last turn', 0, [...begins], { limits: oneTurn }],
  ])('waits for the end of the answer if the message arrives %s', async (_when, at, said, changes) => {
    const { said: heard } = await arriving(at, said, changes);
    expect(heard.slice(0, 2)).toEqual(['user: hello', 'assistant: Once']);
  });

  it('keeps the call if the message turns out to be for another run', async () => {
    const { asked, said } = await arriving(0, [...begins], { getSteeringMessages: async () => [] });
    expect(asked).toEqual([1]);
    expect(said).toEqual(['user: hello', 'assistant: Once']);
  });

  it('gives up at most three calls for messages that arrive', async () => {
    let count = 0;
    let tell = () => {};
    const model = scriptedModel(
      ...Array.from(
        { length: 5 },
        () =>
          async function* () {
            tell();
            await new Promise(setImmediate);
            yield* says('Once.');
          },
      ),
    );
    const config = aConfig({
      model,
      isShown: () => false,
      getSteeringMessages: async () => (count < 6 ? [userSays(`s${count++}`, 'more')] : []),
      onArrival: (listener) => {
        tell = listener;
        return () => undefined;
      },
    });
    const { messages } = await play(agentLoop([userSays('u', 'hello')], aContext(), config, noSignal()));
    const roles = messages.map(({ role }) => role.charAt(0)).join('');
    // One before the first call, three that give a call up, and the next is taken once the answer has ended.
    expect(roles.slice(0, 7)).toBe('uuuuuau');
  });
});

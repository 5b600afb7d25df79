import { describe, expect, it } from 'vitest';
import { textOf } from '#contracts/message.ts';
import type { ModelEvent } from '#contracts/model.ts';
import { agentLoop } from '../../src/agent/loop.ts';
import { isEmptyAnswer } from '../../src/replies/reply-pipeline.ts';
import { aConfig, aContext, userSays } from './support/builders.ts';
import { grammarErrors } from './support/event-grammar.ts';
import { endOf, only, play } from './support/run-loop.ts';
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
    isEmptyAnswer: (text) => isEmptyAnswer(text, 'chat'),
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

describe('a model', () => {
  it.each<readonly [string, Play]>([
    ['says nothing', [completes('end_turn')]],
    ['only thinks', [...thinks, completes('end_turn')]],
    ['writes white space', says(' \n\t ')],
    ['writes what nobody sees', says('\u200b\u202e\u0007\ufeff')],
    ['writes only what is taken out', says('<think>a thought without an end')],
    ['breaks off behind its thinking', [...thinks, breaks]],
    [
      'breaks off behind white space',
      [{ type: 'content_start' }, { type: 'content_delta', text: '\n' }, breaks],
    ],
  ])('that %s is asked once more', async (_what, nothing) => {
    expect(await runWith(nothing, says('Hello.'))).toMatchObject({ asked: 2, text: 'Hello.' });
  });

  it('that breaks off behind words is asked once more unless somebody may have seen them', async () => {
    const words = [...begins, breaks];
    expect(await runShowing(false, words, says('Hello.'))).toMatchObject({ asked: 2, text: 'Hello.' });
    expect(await runShowing(false, words, words, says('Hello.'))).toMatchObject({ asked: 2, text: 'Once' });
    expect(await runShowing(true, words, says('Hello.'))).toMatchObject({ asked: 1, text: 'Once' });
    const calls = [...writesCall({ id: '1', name: 'act' }).slice(0, 2), breaks];
    expect(await runShowing(false, calls, says('Hello.'))).toMatchObject({ asked: 1 });
  });

  it('that says nothing twice is asked no more, and both calls are counted', async () => {
    const empty = [completes('end_turn')];
    const { asked, text, cost, end } = await runWith(empty, empty, says('too late'));
    expect({ asked, text, reason: end.reason }).toEqual({ asked: 2, text: '', reason: 'natural' });
    expect(cost).toBe(2 * 7);
  });

  it.each<readonly [string, Play]>([
    ['breaks off behind a word', [...begins, breaks]],
    ['breaks off in a call', [...writesCall({ id: '1', name: 'act' }).slice(0, 2), breaks]],
    ['fails before anything came', [breaks]],
    ['refuses', [...thinks, { type: 'error', failure: { kind: 'refused', detail: 'no' } }]],
  ])('that %s is not', async (_what, nothing) => {
    const { asked, end } = await runWith(nothing, says('Hello.'));
    expect({ asked, reason: end.reason }).toEqual({ asked: 1, reason: 'model_error' });
  });

  it.each<readonly [string, Play]>([
    ['chooses silence', says('NO_REPLY')],
    ['reaches its length limit', [...thinks, completes('max_tokens')]],
  ])('that %s is not either', async (_what, play) => {
    expect((await runWith(play, says('Hello.'))).asked).toBe(1);
  });
});

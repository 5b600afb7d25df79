/** What a program reads of a run: from the loop's events to the caller's, without a store. */
import { expect, it } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { FeedEvent } from '#contracts/feed.ts';
import type { ModelEvent } from '#contracts/model.ts';
import { agentLoop } from '../../src/agent/loop.ts';
import { RunFeed } from '../../src/runs/run-feed.ts';
import { followRun } from '../../src/service/agent-service.ts';
import type { RunResult } from '../../src/store/reads/read-run-result.ts';
import { aConfig, aContext, aTool, userSays } from '../agent/support/builders.ts';
import { play } from '../agent/support/run-loop.ts';
import { callsTools, completes, scriptedModel } from '../agent/support/scripted-model.ts';

const writes = (...texts: readonly string[]): readonly ModelEvent[] => [
  { type: 'content_start' },
  ...texts.map((text) => ({ type: 'content_delta', text }) as const),
  { type: 'content_stop' },
];

/** Returns each text that the caller sees while the model writes, and the final one. */
async function shownOf(...answers: readonly (readonly ModelEvent[])[]) {
  const published: FeedEvent[] = [];
  const feed = {
    isFollowed: () => true,
    onTextRequest: () => undefined,
    publish: (_: string, event: FeedEvent) => void published.push(event),
  };
  const run = { runId: 'r', laneKey: 'l', sessionId: 's' };
  const runFeed = new RunFeed({ feed, clock: systemClock, redact: (text) => text }, run);
  const config = aConfig({ model: scriptedModel(...answers) });
  const signal = new AbortController().signal;
  await play(agentLoop([userSays('p', 'go')], aContext([aTool('look')]), config, signal), (event) => {
    runFeed.tell(event, true);
  });
  const over = Promise.withResolvers<RunResult>();
  const events = async function* () {
    yield* published;
    over.resolve({ kind: 'unknown' });
  };
  const accepted = Promise.resolve({ runId: 'r' });
  const texts: string[] = [];
  for await (const { message } of followRun({ accepted, events: events(), ended: () => over.promise }))
    if (message !== undefined) texts.push(message);
  const finals = published.flatMap((event) => (event.kind === 'answer' ? [event.text] : []));
  return { texts, finals };
}

it('starts the shown text from scratch with each answer of the model', async () => {
  const looks = [...writes('Let me ', 'look.'), ...callsTools({ id: '1', name: 'look' })];
  const { texts, finals } = await shownOf(looks, [...writes('Found', ' it.'), completes('end_turn')]);
  const isBeginning = (text: string) => 'Let me look.'.startsWith(text) || 'Found it.'.startsWith(text);
  expect(texts.filter((text) => !isBeginning(text))).toEqual([]);
  expect(texts.at(-1)).toBe('Found it.');
  expect(finals).toEqual(['Found it.']);
});

it('never shows a silence token, wherever it is cut', async () => {
  const silence = 'NO_REPLY';
  for (let cut = 1; cut < silence.length; cut += 1) {
    const pieces = writes(silence.slice(0, cut), silence.slice(cut));
    const { texts, finals } = await shownOf([...pieces, completes('end_turn')]);
    expect([texts, finals]).toEqual([[], ['']]);
  }
  const { texts, finals } = await shownOf([...writes(...'All is well.\nNO_REPLY'), completes('end_turn')]);
  expect(texts.filter((text) => !'All is well.'.startsWith(text))).toEqual([]);
  expect(finals).toEqual(['All is well.']);
});

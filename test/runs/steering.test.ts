/** Where a run takes in what was sent meanwhile: every boundary, on a real store. */
import { describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../src/contracts/model.ts';
import { executeRun, type RunDeps } from '../../src/runs/execute-run.ts';
import type { NewItem } from '../../src/store/items/enqueue-item.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aRoute } from '../store/builders.ts';
import { openOwnStore } from '../support/own-store.ts';
import { runDeps, someActiveRuns, untilDone } from './run-builders.ts';

type Send = (text: string, item?: Partial<NewItem>) => Promise<void>;

type Playing = {
  /** Returns the model's turns, which can send something while they are written. */
  turns(send: Send): readonly Play[];
  /** Messages sent between the claim and the first request. */
  readonly before?: readonly string[];
  readonly during?: (send: Send, tool: string) => Promise<void>;
  readonly delivery?: 'one-at-a-time' | 'all';
  readonly isParallel?: boolean;
};

/** Returns a model turn during which something is sent. */
function meanwhile(happen: () => Promise<void>, text: string): Play {
  return async function* () {
    await happen();
    yield* says(text);
  };
}

/** Returns the people’s messages in each request that the request before it didn't contain. */
function newIn(requests: readonly ModelRequest[]): readonly (readonly string[])[] {
  const said = requests.map(({ messages }) =>
    messages.flatMap(({ role, content }) =>
      role === 'user' ? content.flatMap((block) => (block.type === 'text' ? [block.text] : [])) : [],
    ),
  );
  return said.map((texts, index) => texts.slice(said[index - 1]?.length ?? 0));
}

describe('steering', () => {
  const ownStore = openOwnStore();

  async function play(playing: Playing) {
    const store = ownStore();
    const { say, claimRun } = aConversation(store);
    const send: Send = async (text, item = {}) => {
      await say(text, { item });
    };
    await send('begin');
    const run = await claimRun();
    for (const text of playing.before ?? []) await send(text);
    const ran: string[] = [];
    const tools = ['a', 'b', 'c'].map((name) =>
      aTool(name, {
        parallelSafe: playing.isParallel ?? false,
        execute: async () => {
          ran.push(name);
          await playing.during?.(send, name);
          return { text: name };
        },
      }),
    );
    const model = scriptedModel(...playing.turns(send));
    const active = someActiveRuns(store, 'boot-1');
    const ends: string[] = [];
    const publish: RunDeps['feed']['publish'] = (_laneKey, event) => {
      if (event.kind === 'tool' && event.state !== 'started') ends.push(`${event.name} ${event.state}`);
    };
    const base = runDeps(store, { active, model, tools });
    const deps = { ...base, feed: { ...base.feed, publish } };
    const { delivery = 'one-at-a-time' } = playing;
    const settings = { ...deps.settings, steerDelivery: delivery };
    const left = await executeRun({ ...deps, settings }, run, untilDone());
    await active.close();
    return { ran, shown: newIn(model.requests), left, ends };
  }

  const threeCalls = callsTools({ id: '1', name: 'a' }, { id: '2', name: 'b' }, { id: '3', name: 'c' });
  const onA = async (send: Send, tool: string) => (tool === 'a' ? send('x') : undefined);

  it('takes all steers at once if configured', async () => {
    const { shown } = await play({ before: ['x', 'y'], delivery: 'all', turns: () => [says('ok')] });
    expect(shown).toEqual([['begin', 'x', 'y']]);
  });

  it('takes a steer between the tools of a sequential batch and skips the rest', async () => {
    const { ran, shown, ends } = await play({ during: onA, turns: () => [threeCalls, says('ok')] });
    expect(ran).toEqual(['a']);
    expect(shown).toEqual([['begin'], ['x']]);
    expect(ends).toEqual(['a done', 'b skipped', 'c skipped']);
  });

  it('takes a steer after a parallel batch, which is never partly cancelled', async () => {
    const { ran, shown } = await play({
      during: onA,
      isParallel: true,
      turns: () => [threeCalls, says('ok')],
    });
    expect(ran.toSorted()).toEqual(['a', 'b', 'c']);
    expect(shown).toEqual([['begin'], ['x']]);
  });

  it("doesn't take messages of another route or authority", async () => {
    for (const item of [{ authority: 'guest' }, { route: aRoute('elsewhere') }] as const) {
      const turns = (send: Send) => [meanwhile(() => send('x', item), 'ok')];
      const { shown, left } = await play({ turns });
      expect(shown).toEqual([['begin']]);
      expect(left).toMatchObject({ kind: 'armed', delayMs: 0 });
    }
  });
});

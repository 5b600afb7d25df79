import { expect, it, vi } from 'vitest';
import type { ModelEvent } from '../../src/contracts/model.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { dropPart } from '../../src/store/delivery/operator-actions.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, completes, scriptedModel, writesCall } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aWorker, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { playNext, runDeps, runSettings, someActiveRuns, untilDone } from './run-builders.ts';

type Stored = { readonly key: string; readonly text: string; readonly answer: string | null };

/** Reads the parts of a conversation in their order. */
const readParts: StoreQuery<string, readonly Stored[]> = {
  query: 'readParts',
  run: async (tx, conversationKey) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select(['key', 'content', 'answer'])
      .where('conversationKey', '=', conversationKey)
      .orderBy('place')
      .execute();
    return rows.map(({ content, ...row }) => ({ ...row, text: JSON.parse(content).text?.text }));
  },
};

const delta = (text: string) => ({ type: 'content_delta', text }) as const;
const paragraph = (name: string) => `${name} ${'word '.repeat(170).trim()}.\n\n`;
const [one, two, three] = [paragraph('One'), paragraph('Two'), 'Three.'];
const inBlocks = {
  settings: {
    ...runSettings,
    displayOn: () => ({ ...runSettings.displayOn(''), stream: 'blocks' as const }),
  },
};
const firstWords = (parts: readonly Stored[]) => parts.map(({ text }) => text.split(' ')[0]);

function writes(...texts: readonly string[]): readonly ModelEvent[] {
  return [{ type: 'content_start' }, ...texts.map(delta), { type: 'content_stop' }, completes('end_turn')];
}

describeEachDatabase('an answer in blocks', (open) => {
  it('stores each block before the answer is complete, and then only what follows', async () => {
    const { laneKey, say, conversationKey } = aConversation(open());
    await say('go');
    let early: readonly Stored[] = [];
    await playNext(open(), laneKey, {
      model: scriptedModel(async function* () {
        yield* [{ type: 'content_start' } as const, delta(one), delta(two)];
        early = await open().read(readParts, conversationKey);
        yield* [delta(three), { type: 'content_stop' } as const, completes('end_turn')];
      }),
      over: inBlocks,
    });
    expect(firstWords(early)).toEqual(['One']);
    const parts = await open().read(readParts, conversationKey);
    expect(firstWords(parts)).toEqual(['One', 'Two']);
    expect(parts.map(({ text }) => text).join('\n\n')).toBe(`${one}${two}${three}`);
    expect(new Set(parts.map(({ answer }) => answer)).size).toBe(1);
    const { inbox } = await readLane(open(), laneKey);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['answered']);
  });

  it('resumes behind the stored blocks after a crash', async () => {
    const { laneKey, say, conversationKey } = aConversation(open());
    await say('go');
    const crashed = await dieAfter(open(), laneKey, [delta(one), delta(two), delta('Three')], 1);
    await playNext(open(), laneKey, { model: scriptedModel(writes(one, two, three)), over: inBlocks });
    const parts = await open().read(readParts, conversationKey);
    expect(parts.map(({ text }) => text.trim()).join('\n\n')).toBe(`${one}${two}${three}`);
    await crashed.end();
  });

  it('sends another answer whole after a crash, and what was sent stays', async () => {
    const { laneKey, say, conversationKey } = aConversation(open());
    await say('go');
    const crashed = await dieAfter(open(), laneKey, [delta(one), delta(two)], 1);
    await playNext(open(), laneKey, { model: scriptedModel(writes('Something else.')), over: inBlocks });
    const parts = await open().read(readParts, conversationKey);
    expect(firstWords(parts)).toEqual(['One', 'Something']);
    await crashed.end();
  });

  it('sends the text beside tool calls, before the calls', async () => {
    const { laneKey, say, conversationKey } = aConversation(open());
    await say('go');
    let beside: readonly Stored[] = [];
    const look = aTool('look', {
      execute: async () => {
        beside = await open().read(readParts, conversationKey);
        return { text: 'fine' };
      },
    });
    const calls = [...writesCall({ id: 'c1', name: 'look' }), completes('tool_use')];
    await playNext(open(), laneKey, {
      model: scriptedModel(
        [{ type: 'content_start' }, delta('Let me look.'), { type: 'content_stop' }, ...calls],
        writes('It is fine.'),
      ),
      tools: [look],
      over: inBlocks,
    });
    expect(firstWords(beside)).toEqual(['Let']);
    expect(firstWords(await open().read(readParts, conversationKey))).toEqual(['Let', 'It']);
  });

  it('lists each call once, before the block that follows it, in verbose mode', async () => {
    const { laneKey, say, conversationKey } = aConversation(open());
    await say('go');
    const calls = (id: string, text: string): readonly ModelEvent[] => [
      ...[{ type: 'content_start' } as const, delta(text), { type: 'content_stop' } as const],
      ...[...writesCall({ id, name: 'look', input: { at: id } }), completes('tool_use')],
    ];
    const settings = {
      ...runSettings,
      displayOn: () => ({ ...inBlocks.settings.displayOn(), verbose: 'on' as const }),
    };
    await playNext(open(), laneKey, {
      model: scriptedModel(calls('c1', 'Let me look.'), calls('c2', 'And again.'), writes('It is fine.')),
      tools: [aTool('look', { execute: async () => ({ text: 'fine' }) })],
      over: { settings },
    });
    const parts = await open().read(readParts, conversationKey);
    expect(parts.map(({ text }) => text)).toEqual([
      ...['Let me look.', '⚙ look: c1', 'And again.', '⚙ look: c2', 'It is fine.'],
    ]);
  });

  it('sends no part of silence, behind a tool or not', async () => {
    const { laneKey, say, conversationKey } = aConversation(open());
    await say('go');
    await playNext(open(), laneKey, {
      model: scriptedModel(callsTools({ id: 'c1', name: 'none' }), writes(...'**NO_REPLY**')),
      over: inBlocks,
    });
    expect(await open().read(readParts, conversationKey)).toEqual([]);
  });

  it('counts an answer as failed if one of its blocks was dropped while it was written', async () => {
    const { laneKey, say, conversationKey } = aConversation(open());
    await say('go');
    await playNext(open(), laneKey, {
      model: scriptedModel(async function* () {
        yield* [{ type: 'content_start' } as const, delta(one), delta(two)];
        const [part] = await open().read(readParts, conversationKey);
        await open().write(dropPart, { key: part?.key ?? '' });
        yield* [delta(three), { type: 'content_stop' } as const, completes('end_turn')];
      }),
      over: inBlocks,
    });
    const { inbox } = await readLane(open(), laneKey);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['failed']);
  });

  it('keeps the blocks of an answer that is stopped, and sends only the mark behind them', async () => {
    const { laneKey, say, command, conversationKey } = aConversation(open());
    await say('go');
    await playNext(open(), laneKey, {
      model: scriptedModel(async function* () {
        yield* [{ type: 'content_start' } as const, delta(one), delta(two)];
        await command({ kind: 'stop', isPrivileged: true, isAll: false });
        yield* [delta(paragraph('Late')), delta(three), { type: 'content_stop' } as const];
        yield completes('end_turn');
      }),
      over: inBlocks,
    });
    expect(firstWords(await open().read(readParts, conversationKey))).toEqual(['One', 'Stopped.', '⏹']);
  });
});

/** Plays a run whose process stands still once it has stored so many blocks, and whose lease is over. */
async function dieAfter(store: Store, laneKey: string, events: readonly ModelEvent[], blocks: number) {
  const released = Promise.withResolvers<void>();
  const worker = unique('boot');
  const active = someActiveRuns(store, worker);
  const run = await aWorker(store, worker).claimRun(laneKey, 0);
  const model = scriptedModel(async function* () {
    yield* [{ type: 'content_start' } as const, ...events];
    await released.promise;
    yield completes('end_turn');
  });
  const deps = { ...runDeps(store, { active, model, tools: [] }), ...inBlocks };
  const ended = executeRun(deps, run, untilDone()).catch(() => undefined);
  await vi.waitFor(async () => {
    const keys = await store.read(readBlockKeys, run.runId);
    expect(keys.length).toBeGreaterThanOrEqual(blocks);
  });
  return {
    end: async () => {
      released.resolve();
      await ended;
      await active.close();
    },
  };
}

const readBlockKeys: StoreQuery<string, readonly string[]> = {
  query: 'readBlockKeys',
  run: async (tx, runId) => {
    const rows = await tx.db.selectFrom('outbox').select('key').where('runId', '=', runId).execute();
    return rows.map(({ key }) => key);
  },
};

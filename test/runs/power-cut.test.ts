import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { textOf } from '../../src/contracts/message.ts';
import { defineTool, type Tool } from '../../src/contracts/tool.ts';
import { createDemoProvider } from '../../src/models/demo.ts';
import { executeRun, type RunDeps } from '../../src/runs/execute-run.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { addProcess } from '../../src/store/processes/process-records.ts';
import { readHistory } from '../../src/store/reads/read-transcript.ts';
import { callsTools, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { onlyModel } from '../models/only-model.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { openOwnStore } from '../support/own-store.ts';
import { type CutStore, cutPower, everyCut } from '../support/power-cut.ts';
import { runDeps, someActiveRuns, untilDone } from './run-builders.ts';

describe('a power cut while a run works', () => {
  const open = openOwnStore();

  it('leaves one message, at most one effect and one answer, at whichever write the power is cut', async () => {
    const store = open();
    let isReached = true;
    let cuts = 0;
    for (const cut of everyCut(50)) {
      if (!isReached) break;
      const conversation = unique('c');
      const folder = unique('folder');
      const effects: string[] = [];
      await aWorker(store).accept(aMessage({ conversation, text: 'do it' }));

      const dying = cutPower(store, cut);
      await workUntilEnd(dying, { conversation, effects, boot: { id: unique('boot'), folder } }).catch(
        () => undefined,
      );
      isReached = dying.isCut();
      cuts += isReached ? 1 : 0;
      await workUntilEnd(store, { conversation, effects, boot: { id: unique('boot'), folder } });

      const left = await store.read(whatIsLeft, { laneKey: aLane(conversation).key });
      expect({ cut, effects: effects.length <= 1, ...left }).toEqual({
        cut,
        effects: true,
        asked: ['do it'],
        answered: ['done'],
        sent: ['done'],
        outcomes: ['answered'],
      });
    }
    // At least claim, turn, start, result, boundary and answer.
    expect(cuts).toBeGreaterThanOrEqual(10);
    expect(isReached).toBe(false);
  });
});

type Work = {
  readonly conversation: string;
  readonly effects: string[];
  readonly boot: { readonly id: string; readonly folder: string };
};

/** Plays a process that starts, works the lane until it is idle, and may die meanwhile. */
async function workUntilEnd(store: Store | CutStore, { conversation, effects, boot }: Work): Promise<void> {
  await store.write(addProcess, boot);
  const active = someActiveRuns(store, boot.id);
  try {
    for (;;) {
      const claim = await aWorker(store, boot.id).claim(aLane(conversation).key);
      if (claim.kind === 'idle') return;
      if (claim.kind !== 'run') throw new Error(`the lane is ${claim.kind}`);
      const deps = depsOf(store, { active, effects });
      await executeRun(deps, claim.run, untilDone());
    }
  } finally {
    await active.close();
  }
}

function depsOf(
  store: Store,
  { active, effects }: { active: RunDeps['active']; effects: string[] },
): RunDeps {
  const calls = callsTools({ id: 'call-1', name: 'act' });
  const deps = runDeps(store, { active, model: scriptedModel(calls), tools: [anEffect(effects)] });
  return {
    ...deps,
    settings: { ...deps.settings, handOverMs: 0 },
    // The model decides by what it reads: once it has a result, it is done.
    models: onlyModel({
      ...createDemoProvider({ clock: systemClock }),
      stream: (request, signal) => {
        const hasResult = JSON.stringify(request.messages).includes('tool_result');
        return scriptedModel(hasResult ? says('done') : calls).stream(request, signal);
      },
    }),
  };
}

function anEffect(effects: string[]): Tool {
  return defineTool({
    name: 'act',
    description: 'has an effect in the world that must not happen twice',
    inputSchema: z.object({}),
    parallelSafe: false,
    replay: 'never',
    authority: 'guest',
    execute: async (_input, { callId }) => {
      effects.push(callId);
      return { text: 'acted' };
    },
  });
}

type Left = {
  readonly asked: readonly string[];
  readonly answered: readonly string[];
  readonly sent: readonly string[];
  readonly outcomes: readonly (string | null)[];
};

const whatIsLeft: StoreQuery<{ readonly laneKey: string }, Left> = {
  query: 'whatIsLeft',
  run: async (tx, { laneKey }) => {
    const lane = await tx.db
      .selectFrom('lanes')
      .select('sessionId')
      .where('key', '=', laneKey)
      .executeTakeFirstOrThrow();
    const history = await readHistory.run(tx, { sessionId: lane.sessionId });
    const saidBy = (role: string) =>
      history.filter((message) => message.role === role).map((message) => textOf(message.parts));
    const inbox = await tx.db.selectFrom('inbox').selectAll().where('laneKey', '=', laneKey).execute();
    const outbox = await tx.db
      .selectFrom('outbox')
      .select(['content'])
      .where('laneKey', '=', laneKey)
      .execute();
    return {
      asked: saidBy('user'),
      answered: saidBy('assistant').filter((text) => text !== ''),
      sent: outbox.map((part) => {
        const content = json.outbound(part.content);
        return content.kind === 'text' ? content.text.text : content.kind;
      }),
      outcomes: inbox.map((row) => row.outcome),
    };
  },
};

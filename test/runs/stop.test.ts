import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { executeRun } from '../../src/runs/execute-run.ts';
import { claimDelivery } from '../../src/store/delivery/claim-delivery.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aCommand, aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openStore } from '../support/open-store.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

it('says nothing of an answer that was stopped, by another process, before it was on record', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-stop-'));
  const store = await openStore({ kind: 'sqlite', dataDir });
  onTestFinished(async () => {
    await store.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });
  const conversation = unique('c');
  const intake = aWorker(store);
  await intake.accept(aMessage({ conversation, text: 'go' }));
  const stop = { ...aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }) };
  const model = scriptedModel(async function* () {
    await intake.accept(stop);
    yield* says('too late');
  });
  const active = someActiveRuns(store, 'boot-a');
  const run = await aWorker(store, 'boot-a').claimRun(aLane(conversation).key);
  const deps = runDeps(store, { active, model, tools: [] });
  const next = await executeRun(deps, run, {
    signal: new AbortController().signal,
    mayKeepLane: () => false,
    claims: () => undefined,
  });
  await active.close();

  expect(next).toEqual({ kind: 'idle' });
  const { inbox, openRuns } = await readLane(store, run.laneKey);
  expect({ openRuns, outcomes: inbox.map(({ outcome }) => outcome) }).toEqual({
    openRuns: 0,
    outcomes: ['cancelled'],
  });
  const policy = { holder: 'boot-a', leaseMs: 10_000, repeatSafeMs: 0, resendUnknown: false };
  const conversationKey = `test/bot/${conversation}`;
  const said = await store.write(claimDelivery, { ...policy, conversationKey });
  // The command's own answer, and nothing behind it.
  expect(said.kind === 'part' && said.part.content).toMatchObject({ text: { text: 'Stopped.' } });
  expect(await countOpen()).toBe(1);

  function countOpen() {
    return store.read(
      {
        query: 'countOpen',
        run: async (tx, key: string) =>
          (await tx.db.selectFrom('outbox').select('key').where('conversationKey', '=', key).execute())
            .length,
      },
      conversationKey,
    );
  }
});

import { describe, expect, it } from 'vitest';
import type { ModelEvent } from '../../src/contracts/model.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, completes, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aLane, aMessage, aWorker, routeFor, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from './own-store.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

describe('a message whose answer', () => {
  const store = openOwnStore();

  const outcomeOf = async (...plays: readonly Play[]) => {
    const [conversation, boot] = [unique('c'), unique('boot')];
    const worker = aWorker(store(), boot);
    await aWorker(store()).accept(aMessage({ conversation, text: 'hello' }));
    const active = someActiveRuns(store(), boot);
    const run = await worker.claimRun(aLane(conversation).key);
    const route = routeFor(run);
    const sent = { state: 'sent', route, text: 'It is ten.', media: [] };
    const message = aTool('message', { execute: async () => ({ text: 'sent', metadata: { sent } }) });
    const deps = runDeps(store(), { active, model: scriptedModel(...plays), tools: [message] });
    const signal = new AbortController().signal;
    await executeRun(deps, run, { signal, mayKeepLane: () => false, claims: () => undefined });
    await active.close();
    const { inbox } = await readLane(store(), aLane(conversation).key);
    return inbox.map(({ outcome, reason }) => ({ outcome, reason }));
  };
  const nothing: readonly ModelEvent[] = [completes('end_turn')];

  it('is empty twice has failed', async () => {
    expect(await outcomeOf(nothing, nothing)).toEqual([{ outcome: 'failed', reason: 'empty answer' }]);
  });

  it('is silence by decision is silent', async () => {
    expect(await outcomeOf(says('NO_REPLY'))).toEqual([{ outcome: 'silent', reason: null }]);
  });

  it('was sent by the message tool is answered, and nothing more is asked for', async () => {
    const call = callsTools({ id: '1', name: 'message' });
    expect(await outcomeOf(call, nothing, says('never asked'))).toEqual([
      { outcome: 'answered', reason: 'already-sent' },
    ]);
  });
});

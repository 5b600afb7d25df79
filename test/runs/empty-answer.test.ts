import { describe, expect, it } from 'vitest';
import type { ModelEvent } from '../../src/contracts/model.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import { noticesFor } from '../../src/texts/notices.ts';
import { aTool } from '../agent/support/builders.ts';
import { manualClock } from '../agent/support/manual-clock.ts';
import { callsTools, completes, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { until } from '../e2e/until.ts';
import { aLane, aMessage, aWorker, routeFor, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from './own-store.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';
import { saidIn } from './said-in.ts';

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
  it('lets a minute pass is announced once, and said when it comes', async () => {
    const [conversation, boot] = [unique('c'), unique('boot')];
    await aWorker(store()).accept(aMessage({ conversation, text: 'hello' }));
    const run = await aWorker(store(), boot).claimRun(aLane(conversation).key);
    const active = someActiveRuns(store(), boot);
    const clock = manualClock();
    const said = () => store().read(saidIn, conversation);
    const { modelSlow } = noticesFor('en');
    const slow = scriptedModel(async function* () {
      clock.advance(59_000);
      await new Promise(setImmediate);
      expect(await said()).toEqual([]);
      clock.advance(1_000);
      await until(async () => (await said()).length > 0, { what: 'a notice' });
      yield { type: 'content_delta', text: 'Here ' } as const;
      clock.advance(90_000);
      yield { type: 'content_delta', text: 'I am.' } as const;
      yield completes('end_turn');
    });
    const deps = runDeps(store(), { active, model: slow, tools: [] });
    const limits = { ...deps.settings.limits, runTimeoutMs: 600_000, modelIdleMs: 120_000 };
    const signal = new AbortController().signal;
    await executeRun({ ...deps, clock, settings: { ...deps.settings, limits } }, run, {
      signal,
      mayKeepLane: () => false,
      claims: () => undefined,
    });
    await active.close();
    expect(await said()).toEqual([modelSlow, 'Here I am.']);
  });

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

import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { FeedEvent } from '../../src/contracts/feed.ts';
import type { ModelRequest } from '../../src/contracts/model.ts';
import { createDemoProvider } from '../../src/models/demo.ts';
import { titleSystem } from '../../src/runs/execute-compact.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import { titleLaneOf } from '../../src/store/lanes/titles.ts';
import { onlyModel } from '../models/only-model.ts';
import { aLane, aMessage, aWorker, demoOnly, unique } from '../store/builders.ts';
import { openOwnStore } from '../support/own-store.ts';
import { runDeps, someActiveRuns, untilDone } from './run-builders.ts';

describe('a title run', () => {
  const store = openOwnStore();

  it("asks with the first message alone, and publishes the title to the session's followers", async () => {
    const boot = unique('boot');
    const worker = aWorker(store(), boot, undefined, demoOnly);
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'Which of the boats in the harbour are green?' }));
    const run = await worker.claimRun(aLane(conversation).key);
    const requests: ModelRequest[] = [];
    const demo = createDemoProvider({ clock: systemClock, chunkMs: 0 });
    const model = {
      requests,
      stream: (request: ModelRequest, signal: AbortSignal) => {
        requests.push(request);
        return demo.stream(request, signal);
      },
    };
    const told: [string, FeedEvent][] = [];
    const active = someActiveRuns(store(), boot);
    const base = runDeps(store(), { active, model, tools: [] });
    const deps = {
      ...base,
      models: onlyModel({ ...demo, stream: model.stream }),
      feed: {
        ...base.feed,
        publish: (laneKey: string, event: FeedEvent) => {
          if ('sessionId' in event) told.push([laneKey, event]);
        },
      },
    };
    await executeRun(deps, await worker.claimRun(titleLaneOf(run.sessionId)), untilDone());
    await executeRun(deps, run, untilDone());
    await active.close();
    const { sessionId, laneKey } = run;
    const title = 'Which of the boats in the';
    expect(told.filter(([key]) => key === laneKey).map(([, event]) => event)).toMatchObject([
      { kind: 'title', sessionId, title },
      { kind: 'session', sessionId },
      { kind: 'cost', sessionId },
    ]);
    expect(requests[0]).toMatchObject({ system: titleSystem, tools: [], reasoning: 'off' });
    expect(requests[0]?.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Which of the boats in the harbour are green?' }] },
    ]);
  });
});

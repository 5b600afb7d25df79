import { expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import type { Log } from '../../src/contracts/log.ts';
import { type RehearsalDeps, rehearseTurn } from '../../src/runs/rehearse-turn.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { demoOnly, framing, holder } from '../store/builders.ts';
import { everything } from '../store/everything.ts';
import { shaping } from '../support/free-loop.ts';
import { aFolder } from '../support/own-folder.ts';
import { openOwnStore } from '../support/own-store.ts';

const store = openOwnStore();

it('asks no server, stores nothing and says nothing', async ({ onTestFinished }) => {
  const server = await startAnthropicServer();
  onTestFinished(server.close);
  const folder = aFolder();
  const values = { ANTHROPIC_API_KEY: 'test-key', ANTHROPIC_BASE_URL: server.url };
  const seen: string[] = [];
  const tell = () => void seen.push('a line');
  const log: Log = { debug: tell, info: tell, warn: tell, error: tell, child: () => log };
  const deps: RehearsalDeps = {
    ...{ store: store(), ...shaping, clock: systemClock, log },
    config: loadConfig(readEnvironment(values), folder),
    agent: () => ({ workspace: folder, reasoning: 'off' }),
    systemFor: async () => [{ text: 'You are an agent.', isStable: true }],
    toolsFor: () => {
      seen.push('tools');
      return [];
    },
    terms: () => ({
      ...{ holder, leaseMs: 60_000, framing, maxAttempts: 3, class: 'main', newRunIds: ['run'] },
      models: demoOnly,
    }),
    isBusy: () => false,
  };
  const before = await store().read(everything, {});
  await rehearseTurn({ ...deps, isBusy: () => true });
  expect(seen).toEqual([]);
  await rehearseTurn(deps);
  expect(seen).toEqual(['tools']);
  expect(server.connectionCount()).toBe(0);
  expect(await store().read(everything, {})).toBe(before);
});

/**
 * The gateway in its own process, with a probe that kills it: `kill -9` of it and its
 * Redis when the point named in KILL_AT (`<point>:<nth time>`), or in a later message from the test, is reached.
 * With STOP_AT it only stops there until somebody sends it SIGCONT. CLOCK_AHEAD_MS sets its clock forward; HASTY_START shortens the
 * minute that some jobs wait after the start.
 */

import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { createOutsideLoader } from '../../src/cli/plugin-entries.ts';
import { createReloader } from '../../src/cli/reload.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { secretsOf } from '../../src/config/secrets-of.ts';
import type { ChannelEntry } from '../../src/contracts/channel.ts';
import { channelId } from '../../src/contracts/ids.ts';
import type { PluginDefinition } from '../../src/contracts/plugin.ts';
import type { Probe } from '../../src/contracts/probe.ts';
import { createLogger } from '../../src/logging/logger.ts';
import type { PluginEntry } from '../../src/plugin-host/replace-plugins.ts';
import { keepCompiledCode } from '../../src/processes/compiled-code.ts';
import { workspaceDisks } from '../../src/processes/disk-gate.ts';
import { startWithRetry } from '../../src/startup/start-with-retry.ts';
import { killTree } from './process-tree.ts';

/** Acts when the armed point is reached for the nth time from then on. */
function createTrap(act: () => void): Probe & { arm(order: string | undefined): void } {
  let point: string | undefined;
  let left = 0;
  return {
    arm: (order) => {
      const [name, nth = '1'] = order?.split(':') ?? [];
      point = name;
      left = Number(nth);
    },
    reach: (reached) => {
      if (reached !== point) return;
      left -= 1;
      if (left === 0) act();
    },
  };
}

const { TEST_ROLE, TEST_TITLES, TEST_PLUGIN, CLOCK_AHEAD_MS, HASTY_START, STOP_AT, KILL_AT } = process.env;

const channels: readonly ChannelEntry[] = [
  {
    id: channelId('web'),
    localPeer: 'owner',
    load: async () => (await import('../../channels/web/index.ts')).channel,
  },
  {
    id: channelId('terminal'),
    localPeer: 'owner',
    load: async () => (await import('../../channels/terminal/index.ts')).channel,
  },
  {
    id: channelId('telegram'),
    tools: ['poll', 'pin'],
    load: async () => (await import('../../channels/telegram/index.ts')).channel,
  },
  {
    id: channelId('discord'),
    tools: ['poll', 'pin', 'thread'],
    load: async () => (await import('../../channels/discord/index.ts')).channel,
  },
  {
    id: channelId('signal'),
    load: async () => (await import('../../channels/signal/index.ts')).channel,
  },
];

void run();

// In a function, because a bundle's chunks can't wait.
async function run(): Promise<void> {
  const config = configOfTest();
  const logger = await createLogger({ level: config.logLevel, isPretty: false });
  for (const secret of secretsOf(config)) logger.redactor.add(secret);
  let isHasty = HASTY_START !== undefined;
  const loadOutside = createOutsideLoader();
  const reload = createReloader({
    config,
    log: logger.log,
    disks: workspaceDisks,
    load: async () => configOfTest(),
    apply: async (next) => gateway.apply(next, await loadOutside(next)),
  });
  const trap = createTrap(STOP_AT ? () => process.kill(process.pid, 'SIGSTOP') : () => killTree(process.pid));
  trap.arm(STOP_AT || KILL_AT);
  const gateway = await startWithRetry({
    reload,
    config,
    clock: {
      now: () => systemClock.now() + Number(CLOCK_AHEAD_MS ?? 0),
      wait: (ms, signal) => systemClock.wait(isHasty && ms === 60_000 ? 100 : ms, signal),
    },
    log: logger.log,
    version: '0.0.0-test',
    probe: trap,
    channels,
    plugins: [...(await ownPlugins(config)), ...(await loadOutside(config))],
    onSecret: (value) => logger.redactor.add(value),
    redact: (text) => logger.redactor.redact(text),
  });
  process.on('SIGUSR2', () => void reload());
  await gateway.settled;
  isHasty = false;
  // As `parley start` does: most of these processes are killed, and the next ones need the cache.
  keepCompiledCode();
  process.send?.({ kind: 'ready', url: gateway.url ?? '', link: gateway.signInLink?.() ?? '' });
  process.on('message', ({ killAt }: { readonly killAt: string }) => {
    trap.arm(killAt);
    process.send?.({ kind: 'armed' });
  });
  process.once('SIGTERM', async () => {
    await gateway.stop();
    await logger.close();
    process.exit(0);
  });
}

function configOfTest(): Config {
  const loaded = loadConfig(undefined, process.cwd());
  const role = TEST_ROLE === 'gateway' || TEST_ROLE === 'worker' ? TEST_ROLE : loaded.role;
  // Many tests count the requests to the model, or end with the answer.
  return { ...loaded, role, titles: TEST_TITLES !== undefined };
}

async function ownPlugins(config: Config): Promise<readonly PluginEntry[]> {
  const files = (await import('../../plugins/files/index.ts')).plugin as PluginDefinition;
  const own = [{ definition: files, config: config.plugins.files }];
  if (TEST_PLUGIN === undefined) return own;
  const { plugin } = (await import(TEST_PLUGIN)) as { plugin: PluginDefinition };
  return [...own, { definition: plugin, config: {} }];
}

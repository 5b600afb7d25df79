/**
 * `parley start` with a gateway whose store breaks at once. `never`: its stop never ends; `unread`: it logs more than a pipe
 * holds. With `starting` its start never ends either, and it is told to stop.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { runStart } from '../../src/cli/start.ts';

const [, , how] = process.argv;

process.exitCode = await runStart({
  channels: [],
  plugins: [],
  startGateway: async ({ log }) => {
    if (how === 'starting') {
      process.kill(process.pid, 'SIGTERM');
      for (;;) await delay(1_000);
    }
    return {
      ...{ model: { name: 'demo', isDemo: true }, plugins: [] },
      ...{ started: Promise.resolve(), settled: Promise.resolve(), broken: Promise.resolve() },
      channels: () => [],
      waiting: () => undefined,
      rehearse: async () => undefined,
      apply: () => undefined,
      stop: async () => {
        if (how === 'never') for (;;) await delay(1_000);
        for (let line = 0; line < 1_000; line++) log.info({ text: 'x'.repeat(1_000) }, 'line.written');
      },
    };
  },
});

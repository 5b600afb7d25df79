/**
 * `parley start` with a gateway whose store breaks at once. `never`: its stop never ends; `unread`: it logs more than a pipe
 * holds. With `starting` its start never ends either, and it is told to stop; with `fault` the end of its start fails.
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
    // Something that no stop ends.
    setInterval(() => undefined, 1_000);
    const settled = how === 'fault' ? Promise.reject(new Error('No place left.')) : Promise.resolve();
    return {
      ...{ model: { name: 'demo', isDemo: true }, plugins: [] },
      ...{ started: Promise.resolve(), settled, broken: Promise.resolve() },
      channels: () => [],
      waiting: () => undefined,
      rehearse: async () => undefined,
      apply: () => undefined,
      stop: async () => {
        if (how === 'never') return new Promise(() => undefined);
        if (how !== 'unread') return;
        for (let line = 0; line < 1_000; line++) log.info({ text: 'x'.repeat(1_000) }, 'line.written');
      },
    };
  },
});

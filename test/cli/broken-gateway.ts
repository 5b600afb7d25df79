/**
 * Runs `parley start` with a gateway whose store breaks immediately. `never`: its stop never finishes; `unread`: its
 * stop logs more than a pipe can hold; `starting`: its start never finishes either, and it receives SIGTERM; `fault`:
 * its start fails at the end.
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
    // No stop clears this timer.
    setInterval(() => undefined, 1_000);
    const settled = how === 'fault' ? Promise.reject(new Error('No place left.')) : Promise.resolve();
    return {
      ...{ model: { name: 'demo', isDemo: true }, plugins: () => [] },
      ...{ started: Promise.resolve(), settled, broken: Promise.resolve() },
      channels: () => [],
      waiting: () => undefined,
      apply: async () => [],
      stop: async () => {
        if (how === 'never') return new Promise(() => undefined);
        if (how !== 'unread') return;
        for (let line = 0; line < 1_000; line++) log.info({ text: 'x'.repeat(1_000) }, 'line.written');
      },
    };
  },
});

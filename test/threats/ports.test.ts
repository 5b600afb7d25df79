/**
 * Threat 15: a gateway with its own Redis can be reached at the configured port and nowhere else. Checked here from
 * another network namespace; in every run test/e2e/process-health.test.ts reads what each process listens on.
 */

import { expect, it, onTestFinished } from 'vitest';
import { startParley } from '../e2e/parley-process.ts';
import { privateSocket, untilServing } from '../e2e/redis-faults.ts';
import { isLong } from '../support/long-run.ts';
import { aFolder } from '../support/own-folder.ts';
import { listenersOf, twoNamespaces } from './open-ports.ts';

it.runIf(isLong)(
  'exposes no port to another network namespace, except one that was opened',
  { timeout: 600_000 },
  async (test) => {
    const namespaces = await twoNamespaces();
    if (namespaces === undefined) return test.skip('this machine allows no network namespaces');
    onTestFinished(() => namespaces.remove());
    for (const opened of [{}, { PARLEY_HOST: '0.0.0.0' }]) {
      const dataDir = aFolder();
      const parley = await startParley({ dataDir, env: opened, namespace: namespaces.inner });
      onTestFinished(() => parley.kill());
      await untilServing(privateSocket(dataDir));
      const port = Number(new URL(parley.url).port);
      const { PARLEY_HOST: host = '127.0.0.1' } = opened;
      expect(listenersOf(parley.pid)).toEqual([`${host}:${port}`]);
      expect(await namespaces.scan()).toEqual([host === '0.0.0.0' ? [port] : [], []]);
      await parley.stop();
    }
  },
);

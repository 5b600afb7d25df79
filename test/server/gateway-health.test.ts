import { expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { gatewayHealth } from '../../src/server/gateway-health.ts';
import { watchStore } from '../../src/store/watch-store.ts';
import { lazyStore } from '../support/lazy-store.ts';

it('asks a slow database once, however many callers ask for the health', async () => {
  const hung = Promise.withResolvers<never>();
  let asked = 0;
  const read = () => {
    asked += 1;
    return hung.promise;
  };
  const broken = Promise.withResolvers<void>().promise;
  const health = gatewayHealth({
    store: watchStore({ ...lazyStore(), broken, read }, systemClock.now),
    clock: systemClock,
    version: '1',
    model: { name: 'demo', isDemo: true },
    channels: () => [],
    meters: {
      metrics: async () => '',
      delivered: () => undefined,
      overflowed: () => undefined,
      missed: () => undefined,
      received: () => undefined,
    },
    isRedisReady: () => true,
    failures: { lasting: () => [] },
    redact: (text) => text,
  });
  const answers = [health.readiness(), health.readiness(), health.status()] as const;
  hung.reject(new Error('gone'));
  expect((await answers[0]).missing).toEqual(['store']);
  expect((await answers[2]).problems?.map(({ id }) => id)).toEqual(['store']);
  expect(asked).toBe(1);
  await health.readiness();
  expect(asked).toBe(2);
});

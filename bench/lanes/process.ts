/** One Parley under measurement: the complete gateway except its network and its model. Talks to `farm.ts`. */

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { onlyModel } from '../../test/models/only-model.ts';
import { now } from '../clock.ts';

const begunAt = now();

const [{ startGateway }, { loadConfig }, { createLogger }, channels, load, { instantModel }] =
  await Promise.all([
    import('../../src/gateway.ts'),
    import('../../src/config/load-config.ts'),
    import('../../src/logging/logger.ts'),
    import('./channel.ts'),
    import('./load.ts'),
    import('./provider.ts'),
  ]);
const { Histogram } = await import('./histogram.ts');
const { findMark } = await import('./message.ts');

import type { Intake } from '../../src/contracts/channel.ts';
import type { Order, Report, Sent } from './orders.ts';

const tell = (report: Report) => void process.send?.(report);
tell({ kind: 'begun', at: begunAt });

const accepted = new Histogram();
const generator = new load.LoadGenerator();
const loop = monitorEventLoopDelay({ resolution: 5 });
loop.enable();
const state: { intake: Intake | undefined; sent: Sent[] } = { intake: undefined, sent: [] };

/** The process that offers the messages records each answer immediately; the others collect answers for a moment. */
function onSent(text: string): void {
  const marked = findMark(text);
  if (!marked) return;
  const one = { marked, at: now() };
  if (state.intake) {
    generator.sent(one.marked, one.at);
    return;
  }
  state.sent.push(one);
  if (state.sent.length === 1) setTimeout(() => tell({ kind: 'sent', sent: state.sent.splice(0) }), 2);
}

// A title would be an extra model call, in addition to the counted messages.
const config = { ...loadConfig(undefined, process.cwd()), titles: false };
const logger = await createLogger({
  level: config.logLevel,
  isPretty: false,
  destination: process.argv[2] ?? '',
});
const gateway = await startGateway({
  config,
  log: logger.log,
  version: 'bench',
  plugins: [],
  channels: [
    channels.inProcessChannel({
      onReceiving: (intake) => {
        state.intake = intake;
        tell({ kind: 'receiving' });
      },
      onSent,
    }),
  ],
  model: {
    models: onlyModel(instantModel(accepted, () => tell({ kind: 'first-model-call', at: now() }))),
    name: 'instant',
    isDemo: false,
  },
});
tell({ kind: 'ready', at: now() });

function figures(collectsGarbage: boolean): void {
  if (collectsGarbage) globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const longestPauseMs = loop.max / 1e6;
  loop.reset();
  const counts = { accepted: accepted.take(), sent: generator.sentAfter.take() };
  const mb = 2 ** 20;
  tell({
    kind: 'figures',
    figures: { ...counts, residentMb: rss / mb, heapMb: heapUsed / mb, longestPauseMs },
  });
}

async function carryOut(order: Order): Promise<void> {
  switch (order.kind) {
    case 'load':
      if (!state.intake) throw new Error('this process does not receive');
      return tell({ kind: 'loaded', result: await generator.run(state.intake, order.load) });
    case 'figures':
      return figures(order.collectsGarbage);
    case 'sent':
      for (const { marked, at } of order.sent) generator.sent(marked, at);
      return;
    case 'stop':
      await gateway.stop();
      await logger.close();
      return process.disconnect();
    default:
      return order satisfies never;
  }
}

process.on('message', (order: Order) => {
  carryOut(order).catch((error: unknown) => {
    tell({
      kind: 'failed',
      problem: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
  });
});

/** One Parley under measurement: the complete gateway except its network and its model. Talks to `farm.ts`. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { loadConfig } from '../../src/config/load-config.ts';
import type { Intake } from '../../src/contracts/channel.ts';
import { type Gateway, startGateway } from '../../src/gateway.ts';
import { createLogger, type Logger } from '../../src/logging/logger.ts';
import { onlyModel } from '../../test/models/only-model.ts';
import { now } from '../clock.ts';
import { inProcessChannel } from './channel.ts';
import { Histogram } from './histogram.ts';
import { LoadGenerator } from './load.ts';
import { findMark } from './message.ts';
import type { Order, Report, Sent } from './orders.ts';
import { instantModel } from './provider.ts';

const tell = (report: Report) => void process.send?.(report);
const accepted = new Histogram();
const generator = new LoadGenerator();
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

/** Starts it, and carries out orders from then on. `begunAt`: when the process began to load this. */
export async function run(begunAt: number): Promise<void> {
  tell({ kind: 'begun', at: begunAt });
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
      inProcessChannel({
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
  process.on('message', (order: Order) => {
    carryOut(order, { gateway, logger }).catch((error: unknown) => {
      tell({
        kind: 'failed',
        problem: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
    });
  });
}

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

type Running = { readonly gateway: Gateway; readonly logger: Logger };

async function carryOut(order: Order, { gateway, logger }: Running): Promise<void> {
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

import type { Clock } from '#contracts/clock.ts';
import { transcriptId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import type { SettleCall } from '#contracts/tool.ts';
import { boundResult, resultMessage } from '../agent/tool-result.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { readStartedCall, settleParkedCall } from '../store/lanes/park-run.ts';

export type SettleDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  start(effects: Effects): void;
};

/** Creates the only way to answer a parked call. Rejects if the store is unreachable. */
export function createSettleCall({ store, clock, log, probe, start }: SettleDeps): SettleCall {
  return async ({ runId, callId }, { isError = false, ...output }) => {
    const name = await store.read(readStartedCall, { runId, callId });
    const call = { id: callId, name: name ?? '', input: '', finished: true };
    const result = boundResult({ output, isError });
    const { parts } = resultMessage(call, result, { id: transcriptId(''), time: clock.now() });
    const settling = { runId, callId, isError: result.isError, parts };
    const { settlement, laneKey, effects } = await store.write(settleParkedCall, settling);
    log.info({ runId, callId, laneKey, settlement }, 'call.settled');
    if (settlement === 'settled') probe.reach('settled');
    start(effects);
    return settlement;
  };
}

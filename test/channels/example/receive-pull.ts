import type { Intake } from '#contracts/channel.ts';
import { call } from './api.ts';
import { handOver } from './hand-over.ts';
import { batchOf } from './inbound.ts';
import type { Receiver, ReceiverDeps } from './receiver.ts';

type Page = { readonly events: readonly unknown[]; readonly cursor: number; readonly isLossTold: boolean };

/**
 * Receives by polling. The network keeps events until a request names a later cursor, so the cursor in our requests is
 * always one that the intake has stored.
 */
export function startPull(deps: ReceiverDeps, intake: Intake): Receiver {
  const { config, account, clock } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop = async () => {
    let cursor = intake.cursor ?? '0';
    let isTroubled = false;
    while (!signal.aborted) {
      const end = await call(config, { method: 'GET', path: `/events?after=${cursor}` }, signal);
      if (signal.aborted) return;
      if (end.kind !== 'answer' || end.status !== 200) {
        intake.trouble({
          kind: 'unreachable',
          detail: end.kind === 'answer' ? `status ${end.status}` : end.reason,
        });
        isTroubled = true;
        await clock.wait(1000, signal);
        continue;
      }
      if (isTroubled) intake.trouble(undefined);
      isTroubled = false;
      // The server is the other half of this example; a real one would need a schema here.
      const page = end.body as unknown as Page;
      if (page.isLossTold)
        intake.gap({ reason: 'the network has forgotten events that were not fetched in time' });
      const batch = { ...batchOf(page.events, account), cursor: String(page.cursor) };
      if (!(await handOver(intake, batch, { clock, signal }))) return;
      cursor = batch.cursor;
    }
  };
  const running = loop();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

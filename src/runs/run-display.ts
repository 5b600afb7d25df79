import type { Capabilities } from '#contracts/capabilities.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import { routeOf } from '#contracts/route.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { acknowledge } from '../store/lanes/acknowledgement.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { isHeartbeatOnly, readTakenOrigins } from '../store/lanes/take-rows.ts';
import type { Display, RunSettings } from './agents.ts';

/** Decides how a run's answers are shown: as its conversation has chosen, else as its channel is configured. */
export async function displayFor(
  {
    store,
    settings,
    hooks,
  }: { readonly store: Store; readonly settings: RunSettings; readonly hooks?: Hooks },
  run: ClaimedRun,
  channel: HostedChannel | undefined,
): Promise<Display> {
  const route = routeOf(run.target);
  const configured = settings.displayOn(route?.channel ?? '');
  // A hook judges complete texts, so nobody sees one before it, or anything beside it.
  if (run.kind !== 'turn' || hooks?.has('message_sending'))
    return { ...configured, ...hidden, stream: 'off' };
  // Page and terminal show tool calls, reasoning and unfinished text by themselves.
  if (channel?.definition.capabilities.isSessionBound) return { ...configured, ...hidden, stream: 'preview' };
  const display = { ...configured, ...run.display };
  // A heartbeat's answer is silent up to a length at which its beginning would long have been shown.
  return (await isHeartbeat(store, run)) ? { ...display, stream: 'off' } : display;
}

/** Marks the message that the run is answering, where that is configured and possible. */
export async function acknowledgeRun(
  { store, start }: { readonly store: Store; start(effects: Effects): void },
  { target, isResumed, runId, laneKey, epoch }: ClaimedRun,
  { display, channel }: { readonly display: Display; readonly channel: HostedChannel | undefined },
): Promise<void> {
  const { ackReaction: emoji } = display;
  const messageId = routeOf(target)?.replyTo;
  if (emoji === undefined || isResumed || messageId === undefined) return;
  if (!channel?.definition.capabilities.canReact) return;
  start(await store.write(acknowledge, { laneKey, epoch, runId, messageId, emoji }));
}

const hidden = { verbose: 'off', reasoning: 'off' } as const;

async function isHeartbeat(store: Store, { isResumed, runId, isHeartbeat }: ClaimedRun): Promise<boolean> {
  return isResumed ? isHeartbeatOnly(await store.read(readTakenOrigins, { runId })) : isHeartbeat === true;
}

/** If the channel is switched off meanwhile, the answer is shaped for the least capable one. */
export const minCapabilities: Capabilities = {
  text: { maxLength: 2000 },
  canReact: false,
  canQuote: false,
  canEdit: false,
  canDelete: false,
  canPress: false,
  preview: { dm: 'none', group: 'none' },
  previewIntervalMs: { dm: 1000, group: 1000 },
  isSessionBound: false,
  repeatSafeMs: 0,
};

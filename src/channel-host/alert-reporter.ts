import type { ChannelGap, HostedChannel } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { type ChannelId, channelOfConnection, connectionName } from '#contracts/ids.ts';
import { createOwnerAlerts, type OwnerAlerts, type OwnerAlertsDeps } from '../outbox/owner-alerts.ts';
import { readOpenAlerts } from '../store/alerts/alert.ts';
import { conversationKeyOf } from '../store/base/keys.ts';
import type { ChannelState } from './channel-state.ts';

/** Takes the stages' reports that an owner may have to know of. */
export interface AlertReporter extends Pick<OwnerAlerts, 'endWhere' | 'shown' | 'dismiss'> {
  /** `account`: the key of the connection's account, once known. */
  onState(line: string, state: ChannelState, account?: string): void;
  onGap(channel: HostedChannel, gap: ChannelGap): void;
  /** An item has waited in a lane for `waitedMs` without being worked on. */
  onAlarm(laneKey: string, waitedMs: number): void;
  onAlarmOver(laneKey: string): void;
  /** Returns the lanes with an open alarm, whichever process raised it. */
  openAlarms(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** Creates the reporter. */
export function createAlertReporter(
  deps: Omit<OwnerAlertsDeps, 'reach'> & {
    /** This machine's own channels; its user sees the page. */
    readonly localChannels: readonly ChannelId[];
  },
): AlertReporter {
  const accounts = new Map<string, string>();
  const [usable, away] = [new Set<string>(), new Set<string>()];
  const reach = () => ({
    accounts: [...usable].flatMap((line) => accounts.get(line) ?? []),
    awaited: [...away].map(channelOfConnection),
    accountOf: (line: string) => accounts.get(line),
  });
  const alerts = createOwnerAlerts({ ...deps, reach });
  const channels = createChannelWatch({ clock: deps.clock, raise: alerts.raise, end: alerts.end });
  return {
    onState: (line, state, account) => {
      if (account !== undefined) accounts.set(line, account);
      const isLocal = deps.localChannels.some((id) => id === channelOfConnection(line));
      usable.delete(line);
      away.delete(line);
      if (!isLocal && state.kind !== 'off') (isUsable(state) ? usable : away).add(line);
      channels.onState(line, state);
    },
    onGap: ({ definition, account, accountName }, { conversation, reason, code }) => {
      const subject =
        conversation === undefined
          ? connectionName(definition.id, accountName)
          : conversationKeyOf({ channel: definition.id, account: account.id, conversation });
      alerts.raise({ kind: 'events-missed', subject, values: { reason, ...(code && { code }) } });
    },
    onAlarm: (laneKey, waitedMs) => {
      const seconds = String(Math.round(waitedMs / 1000));
      alerts.raise({ kind: 'lane-stuck', subject: laneKey, values: { seconds } });
    },
    onAlarmOver: (laneKey) => alerts.end({ kind: 'lane-stuck', subject: laneKey }),
    openAlarms: async () => {
      const open = await deps.store.read(readOpenAlerts, {});
      return open.flatMap(({ kind, subject }) => (kind === 'lane-stuck' ? [subject] : []));
    },
    endWhere: alerts.endWhere,
    shown: alerts.shown,
    dismiss: alerts.dismiss,
    stop: async () => {
      channels.stop();
      await alerts.stop();
    },
  };
}

/** True on standby too: another process receives, but this one can still send. */
function isUsable({ kind }: ChannelState): boolean {
  return kind === 'on' || kind === 'standby';
}

interface ChannelWatch {
  onState(line: string, state: ChannelState): void;
  stop(): void;
}

/** Shorter outages of a channel aren't reported. */
const patienceMs = 60_000;

type Values = { readonly reason: string; readonly code?: string };

const kinds = ['channel-down', 'channel-unauthorised', 'channel-challenge'] as const;

/**
 * Decides which states of a channel are reported to the owner: outages longer than a minute, and refused
 * credentials and captchas immediately, since only the owner can resolve them.
 */
function createChannelWatch(
  deps: Pick<OwnerAlerts, 'raise' | 'end'> & { readonly clock: Clock },
): ChannelWatch {
  const { clock, raise, end } = deps;
  const stopping = new AbortController();
  const down = new Map<string, { values: Values; readonly over: AbortController }>();

  const isUp = (line: string) => {
    down.get(line)?.over.abort();
    down.delete(line);
  };
  const isDown = (line: string, values: Values) => {
    const known = down.get(line);
    if (known) {
      known.values = values;
      return;
    }
    const entry = { values, over: new AbortController() };
    down.set(line, entry);
    const until = AbortSignal.any([stopping.signal, entry.over.signal]);
    void clock.wait(patienceMs, until).then(() => {
      if (!until.aborted) raise({ kind: 'channel-down', subject: line, values: entry.values });
    });
  };

  const onTrouble = (line: string, { problem, reason, code }: Extract<ChannelState, { kind: 'trouble' }>) => {
    const values = { reason, ...(code && { code }) };
    const trouble = { subject: line, values };
    if (problem === 'unauthorised') raise({ ...trouble, kind: 'channel-unauthorised' });
    else if (problem === 'challenge') raise({ ...trouble, kind: 'channel-challenge' });
    else isDown(line, values);
  };

  return {
    onState: (line, state) => {
      switch (state.kind) {
        case 'starting':
          return;
        case 'standby':
          // Another process receives, and reports its own problems.
          return isUp(line);
        case 'on':
        case 'off':
          isUp(line);
          for (const kind of kinds) end({ kind, subject: line, isSilent: state.kind === 'off' });
          return;
        case 'trouble':
          return onTrouble(line, state);
        default:
          return state satisfies never;
      }
    },
    stop: () => stopping.abort(),
  };
}

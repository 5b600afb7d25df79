import type { ChannelGap, HostedChannel } from '#contracts/channel.ts';
import { channelOfConnection, connectionName } from '#contracts/connection-name.ts';
import type { ChannelId } from '#contracts/ids.ts';
import { createOwnerAlerts, type OwnerAlerts, type OwnerAlertsDeps } from '../outbox/owner-alerts.ts';
import { readOpenAlerts } from '../store/alerts/note-alert.ts';
import { conversationKeyOf } from '../store/base/conversation-key.ts';
import type { ChannelState } from './channel-state.ts';
import { createChannelWatch } from './channel-watch.ts';

export type AlertReporterDeps = Omit<OwnerAlertsDeps, 'reach'> & {
  /** This machine's own channels; its user sees the page. */
  readonly localChannels: readonly ChannelId[];
};

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
export function createAlertReporter(deps: AlertReporterDeps): AlertReporter {
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

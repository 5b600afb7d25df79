import type { Clock } from '#contracts/clock.ts';
import type { OwnerAlerts } from '../outbox/owner-alerts.ts';
import type { ChannelState } from './channel-state.ts';

export type ChannelWatchDeps = Pick<OwnerAlerts, 'raise' | 'end'> & { readonly clock: Clock };

export interface ChannelWatch {
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
export function createChannelWatch({ clock, raise, end }: ChannelWatchDeps): ChannelWatch {
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

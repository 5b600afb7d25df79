import type { Clock } from '#contracts/clock.ts';
import type { ChannelId } from '#contracts/ids.ts';
import type { NoticeKind, Trouble } from '#contracts/owner-notice.ts';
import type { ChannelState } from './channel-host.ts';

export type ChannelWatchDeps = {
  readonly clock: Clock;
  raise(trouble: Trouble): void;
  end(trouble: {
    readonly kind: NoticeKind;
    readonly subject: string;
    /** The owner is not told of the end. */
    readonly isSilent?: boolean;
  }): void;
};

export interface ChannelWatch {
  onState(id: ChannelId, state: ChannelState): void;
  stop(): void;
}

/** A channel that is away for a moment is nobody's business. */
const patienceMs = 60_000;

const kinds = ['channel-down', 'channel-unauthorised', 'channel-challenge'] as const;

/**
 * Decides which states of a channel the owner is told of: down for longer than a minute; credentials that
 * are refused and captchas at once, since nobody else can mend them.
 */
export function createChannelWatch({ clock, raise, end }: ChannelWatchDeps): ChannelWatch {
  const stopping = new AbortController();
  const down = new Map<ChannelId, { reason: string; readonly over: AbortController }>();

  const isUp = (id: ChannelId) => {
    down.get(id)?.over.abort();
    down.delete(id);
  };
  const isDown = (id: ChannelId, reason: string) => {
    const known = down.get(id);
    if (known) {
      known.reason = reason;
      return;
    }
    const entry = { reason, over: new AbortController() };
    down.set(id, entry);
    const until = AbortSignal.any([stopping.signal, entry.over.signal]);
    void clock.wait(patienceMs, until).then(() => {
      if (!until.aborted) raise({ kind: 'channel-down', subject: id, values: { reason: entry.reason } });
    });
  };

  const onTrouble = (id: ChannelId, { problem, reason }: Extract<ChannelState, { kind: 'trouble' }>) => {
    const trouble = { subject: id, values: { reason } };
    if (problem === 'unauthorised') raise({ ...trouble, kind: 'channel-unauthorised' });
    else if (problem === 'challenge') raise({ ...trouble, kind: 'channel-challenge' });
    else isDown(id, reason);
  };

  return {
    onState: (id, state) => {
      switch (state.kind) {
        case 'starting':
          return;
        case 'standby':
          // Another process receives, and looks after its notices.
          return isUp(id);
        case 'on':
        case 'off':
          isUp(id);
          for (const kind of kinds) end({ kind, subject: id, isSilent: state.kind === 'off' });
          return;
        case 'trouble':
          return onTrouble(id, state);
        default:
          return state satisfies never;
      }
    },
    stop: () => stopping.abort(),
  };
}

import type { ChannelState } from '../channel-host/channel-state.ts';
import type { ChannelStatus } from '../operations/status.ts';

/** Describes a channel's state for the page and `parley status`. */
export function channelStatus({
  id,
  state,
}: {
  readonly id: string;
  readonly state: ChannelState;
}): ChannelStatus {
  switch (state.kind) {
    case 'on':
      return { id, state: 'on', detail: shownAccount(state) };
    case 'off':
      return { id, state: 'off', detail: state.reason };
    case 'starting':
      return { id, state: 'trouble', detail: 'connecting' };
    case 'standby':
      return { id, state: 'standby', detail: state.reason };
    case 'trouble': {
      const { reason: detail, since, nextTryAt } = state;
      return { id, state: 'trouble', detail, since, ...(nextTryAt !== undefined && { nextTryAt }) };
    }
    default:
      return state satisfies never;
  }
}

/** Returns the account's name, with the reason when the channel is degraded. */
function shownAccount({ account, reason }: Extract<ChannelState, { kind: 'on' }>): string {
  return reason === undefined ? account : `${account} (degraded: ${reason})`;
}

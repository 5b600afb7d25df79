import type { DropPolicy, QueueMode } from '#contracts/queue-settings.ts';
import type { StoreCommand } from '../base/command.ts';
import { lockLane } from '../rows/lane-row.ts';
import { changeSettings } from '../rows/lane-settings.ts';

/** A queue mode chosen for a conversation on the chat page. */
export type LaneModeInput = { readonly laneKey: string; readonly mode: QueueMode };

/**
 * Sets the queue mode of a conversation, like `/queue <mode>` in it. Returns false if there is no such lane or it is
 * one of Parley's own. Safe to repeat: the same mode changes nothing.
 */
export const setLaneMode: StoreCommand<LaneModeInput, boolean> = {
  name: 'setLaneMode',
  run: async (tx, { laneKey, mode }) => {
    const lane = await lockLane(tx, laneKey);
    if (lane?.class !== 'main') return false;
    const { debounceMs, quietMs, cap } = lane;
    // Written by Parley, from the configuration and the choice in chat: both as of the lane's last message.
    const drop = lane.drop as DropPolicy;
    await changeSettings(tx, lane, {
      change: { mode },
      configured: { mode, debounceMs, quietMs, cap, drop },
    });
    return true;
  },
};

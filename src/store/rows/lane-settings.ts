/**
 * The effective settings of a lane. Each setting made with `/queue` takes precedence; all others follow the
 * configuration, which intake reads for every event.
 */

import type { Selectable } from 'kysely';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { changeRow } from '../base/row-by-key.ts';
import type { LanesTable } from '../base/tables.ts';

type Lane = Selectable<LanesTable>;

/** Returns the lane as currently configured, with the settings made for it in chat taking precedence. */
export async function followConfiguration(tx: Tx, lane: Lane, configured: QueueSettings): Promise<Lane> {
  const settings = { ...configured, ...json.queueSettings(lane.overrides) };
  const isSame =
    lane.mode === settings.mode &&
    lane.debounceMs === settings.debounceMs &&
    lane.quietMs === settings.quietMs &&
    lane.cap === settings.cap &&
    lane.drop === settings.drop;
  if (isSame) return lane;
  await writeSettings(tx, lane, settings);
  return { ...lane, ...settings };
}

/**
 * Overrides settings of the lane, in addition to earlier overrides; `reset` leaves all settings to the configuration.
 * The caller holds the lane's lock. Repeating it changes nothing.
 */
export async function changeSettings(
  tx: Tx,
  lane: Lane,
  { change, configured }: { change: Partial<QueueSettings> | 'reset'; configured: QueueSettings },
): Promise<QueueSettings> {
  const named = change === 'reset' ? {} : { ...json.queueSettings(lane.overrides), ...change };
  const overrides = change === 'reset' ? null : JSON.stringify(named);
  const settings = { ...configured, ...named };
  await writeSettings(tx, lane, settings);
  await changeRow(tx, 'lanes', lane.key, { overrides });
  return settings;
}

async function writeSettings(tx: Tx, { key }: Lane, settings: QueueSettings): Promise<void> {
  const { mode, debounceMs, quietMs, cap, drop } = settings;
  await changeRow(tx, 'lanes', key, { mode, debounceMs, quietMs, cap, drop });
}

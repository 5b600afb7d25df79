import { randomBytes } from 'node:crypto';

/** The PARLEY_TOKEN of the test gateways. */
export const pageToken = randomBytes(24).toString('hex');

export type ChannelShown = { readonly id: string; readonly state: string; readonly detail: string };

/** Returns what the page at `url` shows for a channel. */
export async function channelShown(url: string, id: string): Promise<ChannelShown> {
  const answer = await fetch(`${url}/api/status`, { headers: { authorization: `Bearer ${pageToken}` } });
  const { channels } = (await answer.json()) as { channels: readonly ChannelShown[] };
  const found = channels.find((channel) => channel.id === id);
  if (!found) throw new Error(`no ${id} in ${JSON.stringify(channels)}`);
  return found;
}

import { expect, it } from 'vitest';
import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineReader } from '#contracts/timeline.ts';
import { patienceMs } from '../support/patience.ts';
import { createSessionDouble } from '../support/session-double.ts';
import { channelContract } from './channel-contract.ts';
import type { ChannelHarness } from './contract/harness.ts';
import type { FrameClient } from './frame-client.ts';

type ClientHost = Pick<ChannelHarness, 'newAdapter' | 'close'> & { newClient(): FrameClient };

type ClientChannel = Pick<ChannelHarness, 'capabilities'> & {
  readonly route: ReplyRoute;
  host(timeline: TimelineReader): Promise<ClientHost>;
};

/** Tests a channel whose clients are Parley's own: a client keeps what it sends until it is acknowledged. */
export function clientContract(name: string, { capabilities, route, host: open }: ClientChannel): void {
  channelContract(name, async () => {
    const host = await open(createSessionDouble().timeline);
    const client = host.newClient();
    return {
      ...{ capabilities, account: name, route, newAdapter: host.newAdapter, close: host.close },
      personSays: async (text) => void client.say(text),
      redeliver: async () => client.repeatLast(),
      unacknowledged: () => client.unacknowledged.length,
      standing: async () => {
        await client.synced();
        return client.standing;
      },
    };
  });

  it(`${name} repeats the outcome of a frame whose acknowledgement was lost`, async () => {
    const session = createSessionDouble();
    session.decide = () => ({ kind: 'command', command: 'status' });
    const host = await open(session.timeline);
    const adapter = host.newAdapter();
    await adapter.start(session.intake);
    const client = host.newClient();
    const id = client.say('/status');
    const acks = () => client.frames.filter((frame): frame is AckFrame => frame.type === 'ack');
    await expect.poll(acks, { timeout: patienceMs }).toHaveLength(1);
    client.repeatLast();
    await expect.poll(acks, { timeout: patienceMs }).toHaveLength(2);
    expect(acks()[1]).toEqual({ type: 'ack', id, state: 'command', reason: 'status' });
    await adapter.stop();
    await host.close();
  });
}

type AckFrame = Extract<ServerFrame, { type: 'ack' }>;

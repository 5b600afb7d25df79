import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import { filesOf } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineReader } from '#contracts/timeline.ts';
import { patienceMs } from '../support/patience.ts';
import { createSessionDouble } from '../support/session-double.ts';
import { channelContract } from './channel-contract.ts';
import { type ChannelHarness, shownFile } from './contract/harness.ts';
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
    const folders = new Set<string>();
    return {
      ...{ capabilities, account: name, route, close: host.close },
      newAdapter: () => notingFolders(host.newAdapter(), folders),
      personSays: async (text) => void client.say(text),
      redeliver: async () => client.repeatLast(),
      unacknowledged: () => client.unacknowledged.length,
      standing: async () => {
        await client.synced();
        return Promise.all(client.standing.map((message) => withBytes(message, folders)));
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

/** Notes where the files of parts are: for clients that is the media folder. */
function notingFolders(adapter: ChannelAdapter, folders: Set<string>): ChannelAdapter {
  const send: ChannelAdapter['send'] = (outbound, signal) => {
    const files = outbound.content.kind === 'media' ? filesOf(outbound.content) : [];
    for (const { path } of files) folders.add(dirname(path));
    return adapter.send(outbound, signal);
  };
  return { ...adapter, send };
}

/** Reads a message's file as a client opens it: the named copy in the media folder. */
async function withBytes({ file, ...message }: FrameClient['standing'][number], folders: Set<string>) {
  if (file === undefined) return message;
  const [folder = ''] = folders;
  const bytes = await readFile(join(folder, file.stored));
  expect(file.sizeBytes).toBe(bytes.length);
  return { ...message, file: await shownFile(file.name, [bytes]) };
}

type AckFrame = Extract<ServerFrame, { type: 'ack' }>;

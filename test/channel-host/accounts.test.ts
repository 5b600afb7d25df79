import { expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { ChannelDefinition } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import { accountId, channelId } from '#contracts/ids.ts';
import { type ChannelHost, createChannelHost } from '../../src/channel-host/channel-host.ts';
import { noLiveEvents } from '../../src/queue/live-events.ts';
import { aStore } from '../support/own-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';
import { plainCapabilities } from './plain-capabilities.ts';

const patient = { timeout: patienceMs, interval: 10 };
const net = channelId('net');

/** A network whose tokens are `<account>` or `<account>:<mood>`; with a mood, the account is unreachable or refused. */
function aNetwork() {
  const receiving = new Set<string>();
  const folders = new Map<string, string>();
  const channel: ChannelDefinition<{ token: string }> = {
    id: net,
    capabilities: plainCapabilities,
    configSchema: z.object({ token: z.string() }),
    create: ({ token }, { dataDir }) => {
      const [account = '', mood] = token.split(':');
      return {
        identify: async () => {
          if (mood === 'refused') throw new ParleyError('channel_unauthorised', 'the token is revoked');
          if (mood === 'away') throw new ParleyError('channel_unavailable', 'nobody answers');
          folders.set(account, dataDir);
          return { id: accountId(account), name: `@${account}` };
        },
        start: async () => void receiving.add(account),
        stop: async () => void receiving.delete(account),
        send: async () => ({ kind: 'sent', receipts: [] }),
      };
    },
  };
  return { receiving, folders, load: async () => channel as ChannelDefinition };
}

async function aHost(): Promise<ChannelHost> {
  const { store } = await aStore();
  const host = createChannelHost({
    ...{ store, holder: 'boot-1', clock: systemClock, log: silentLog },
    receives: true,
    live: noLiveEvents,
    intakeFor: () => ({ accept: async () => [] }),
    onReceiving: () => undefined,
    onState: () => undefined,
    onGap: () => undefined,
  });
  onTestFinished(() => host.stopReceiving());
  return host;
}

const linesOf = (host: ChannelHost) =>
  Object.fromEntries(
    host
      .states()
      .map(({ id, state }) => [id, 'reason' in state ? `${state.kind}: ${state.reason}` : state.kind]),
  );

it('runs each account on its own, so that one failing does not affect another', async () => {
  const [host, network] = [await aHost(), aNetwork()];
  const run = (accountName: string | undefined, token: string) =>
    host.run({
      ...{ id: net, load: network.load, settings: { token } },
      ...(accountName !== undefined && { accountName }),
      deps: { dataDir: `/data/${accountName ?? 'net'}` },
    });
  await Promise.all([
    run(undefined, 'one'),
    run('work', 'two'),
    run('home', 'three:away'),
    run('old', 'four:refused'),
  ]);
  expect(linesOf(host)).toEqual({
    net: 'on',
    'net.work': 'on',
    'net.home': 'trouble: nobody answers',
    'net.old': 'trouble: the token is revoked',
  });
  expect([...network.receiving].sort()).toEqual(['one', 'two']);
  expect(network.folders.get('two')).toBe('/data/work');
  const found = host.find({ channel: net, account: accountId('two') });
  expect([found?.account.name, found?.accountName]).toEqual(['@two', 'work']);
  expect(host.find({ channel: net, account: accountId('three') })).toBeUndefined();
});

it('receives once for an account that is configured twice (pitfall 54)', async () => {
  const [host, network] = [await aHost(), aNetwork()];
  const run = (accountName: string, token: string) =>
    host.run({ id: net, accountName, load: network.load, settings: { token }, deps: { dataDir: '/data' } });
  await run('work', 'one');
  await run('again', 'one:');
  expect(linesOf(host)).toEqual({
    'net.work': 'on',
    'net.again': 'trouble: net.again is the same account (@one) as net.work; keep one of them.',
  });
  await vi.waitFor(() => expect([...network.receiving]).toEqual(['one']), patient);
  expect(host.find({ channel: net, account: accountId('one') })?.accountName).toBe('work');
});

it('names the account whose settings are wrong', async () => {
  const [host, network] = [await aHost(), aNetwork()];
  await host.run({
    id: net,
    accountName: 'work',
    load: network.load,
    settings: {},
    deps: { dataDir: '/data' },
  });
  expect(linesOf(host)['net.work']).toMatch(/^trouble: channels\.net\.accounts\.work\.token: /);
});

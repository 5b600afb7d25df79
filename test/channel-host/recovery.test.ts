import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import type { Acceptance } from '#contracts/acceptance.ts';
import type {
  BotAccount,
  ChannelDefinition,
  ChannelGap,
  ChannelTrouble,
  Intake,
} from '#contracts/channel.ts';
import { type ErrorCode, ParleyError } from '#contracts/errors.ts';
import { accountId, channelId, eventKey } from '#contracts/ids.ts';
import { createChannelHost } from '../../src/channel-host/channel-host.ts';
import { createRetries } from '../../src/channel-host/channel-registry.ts';
import type { ChannelState } from '../../src/channel-host/channel-state.ts';
import { noLiveEvents } from '../../src/queue/live-events.ts';
import { channelStatus } from '../../src/server/gateway-health.ts';
import { readinessOf, readyAnswer } from '../../src/server/readiness.ts';
import type { Store } from '../../src/store/base/command.ts';
import { type AccountLease, claimAccount } from '../../src/store/processes/accounts.ts';
import { anAccount, anEnvelope } from '../inbound/support/intake-fixture.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { openOwnStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { createSteppedClock, turns } from '../support/stepped-clock.ts';
import { plainCapabilities } from './plain-capabilities.ts';

const net = channelId('net');
const minute = 60_000;
const dataDir = sharedFolder();
const store = openOwnStore(dataDir);

/**
 * Hosts a network that fails on request: each call takes the next outcome from its list and works once that is empty.
 */
async function aHostedNetwork({ isAlone = false } = {}) {
  const calls: string[] = [];
  const known = { id: 'bot', name: '@bot' };
  const onIdentify: (() => Promise<void>)[] = [];
  const onStart: ((intake: Intake) => Promise<void>)[] = [];
  const onClaim: (() => Promise<AccountLease>)[] = [];
  const states: ChannelState[] = [];
  const gaps: ChannelGap[] = [];
  const accepted: Acceptance[] = [];
  const clock = createSteppedClock(async () => {
    await turns();
    // The store runs writes in order, so once this one is done, all earlier ones are too.
    for (let round = 0; round < 2; round += 1) {
      await store().write(claimAccount, { account: 'other', holder: 'test', leaseMs: 1 });
      await turns();
    }
  });
  const hostStore: Store = {
    ...store(),
    write: async (command, input) => {
      if (command.name !== claimAccount.name) return store().write(command, input);
      calls.push('claim');
      const instead = await onClaim.shift()?.();
      return instead === undefined ? store().write(command, input) : (instead as never);
    },
  };
  let intake: Intake | undefined;
  /** The account of each tenure, as given to the intake. */
  const accounts: BotAccount[] = [];
  const definition: ChannelDefinition = {
    id: net,
    capabilities: plainCapabilities,
    configSchema: z.object({}),
    create: () => ({
      identify: async () => {
        calls.push('identify');
        await onIdentify.shift()?.();
        return { id: accountId(known.id), name: known.name };
      },
      start: async (given) => {
        calls.push('start');
        intake = given;
        await onStart.shift()?.(given);
      },
      stop: async () => void calls.push('stop'),
      send: async () => ({ kind: 'sent', receipts: [] }),
    }),
  };
  const host = createChannelHost({
    ...{ store: hostStore, holder: 'boot-1', clock, log: silentLog, live: noLiveEvents },
    random: () => 0,
    receives: true,
    isAlone,
    intakeFor: ({ account }) => {
      accounts.push(account);
      return { accept: async () => accepted };
    },
    onReceiving: () => undefined,
    onState: (_line, state) => void states.push(state),
    onGap: (_channel, gap) => void gaps.push(gap),
  });
  onTestFinished(async () => {
    const stopped = host.stopReceiving();
    await clock.advance(0);
    await stopped;
  });
  const began = clock.now();
  return {
    ...{ clock, calls, known, accounts, onIdentify, onStart, onClaim, states, gaps, accepted },
    began,
    begin: () => {
      void host.run({ id: net, load: async () => definition, settings: {}, deps: { dataDir: dataDir() } });
      return clock.advance(0);
    },
    intake: () => intake as Intake,
    state: () => host.states()[0]?.state,
    count: (call: string) => calls.filter((one) => one === call).length,
  };
}

const fails = (code: ErrorCode) => () => Promise.reject(new ParleyError(code, code));
const refused: ChannelTrouble = { kind: 'unauthorised', detail: '401' };

describe('a degraded channel', () => {
  it('keeps a degraded channel on and says what is missing until it recovers', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    network
      .intake()
      .trouble({ kind: 'unreachable', detail: 'its identity is unconfirmed', isDegraded: true });
    const state = { kind: 'on', account: '@bot', reason: 'its identity is unconfirmed' } as const;
    expect(network.state()).toEqual(state);
    expect(channelStatus({ id: 'net', state }).detail).toBe('@bot (degraded: its identity is unconfirmed)');
    const readiness = readinessOf({ needed: [], problems: [] }, [{ id: 'net', state }]);
    expect(readyAnswer(readiness, '/readyz')).toEqual({
      code: 200,
      body: { status: 'ready', components: [{ name: 'net', state: 'ok', reason: state.reason }] },
    });
    network.intake().trouble(undefined);
    expect(network.state()).toEqual({ kind: 'on', account: '@bot' });
  });
});

describe('a channel asked to wait', () => {
  it('says when a channel tries again', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    const nextTryAt = network.clock.now() + 4 * minute;
    network.intake().trouble({ kind: 'unreachable', detail: '429', nextTryAt });
    const state = network.state();
    expect(state).toMatchObject({ kind: 'trouble', nextTryAt });
    const readiness = readinessOf({ needed: [], problems: [] }, [
      { id: 'net', state: state as ChannelState },
    ]);
    const shown = { name: 'net', state: 'down', nextTryAt: new Date(nextTryAt).toISOString() };
    expect(readyAnswer(readiness, '/readyz')).toMatchObject({ code: 503, body: { components: [shown] } });
    expect(channelStatus({ id: 'net', state: state as ChannelState })).toMatchObject({ nextTryAt });
  });
});

describe('unreadable events', () => {
  it('reports an unreadable event as possibly missed, once', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    const unreadable = { eventKey: eventKey('unreadable:7'), raw: '{', problem: 'too long' };
    network.accepted.push({ kind: 'refused', reason: 'unreadable' });
    await network.intake().accept({ events: [], unreadable: [unreadable] });
    expect(network.gaps).toEqual([
      { code: 'lost', reason: expect.stringMatching(/unreadable events: 1;.* why unreadable:7`$/) },
    ]);
    const of = { outcome: 'refused', reason: 'unreadable' };
    network.accepted.splice(0, 1, { kind: 'duplicate', of });
    await network.intake().accept({ events: [], unreadable: [unreadable] });
    expect(network.gaps).toHaveLength(1);
  });

  it("reports unreadable events with the channel's explanation, each kind once per batch", async () => {
    const network = await aHostedNetwork();
    await network.begin();
    const unread = (key: string, gap?: ChannelGap) => ({
      ...{ eventKey: eventKey(key), raw: '{', problem: 'no' },
      ...(gap && { gap }),
    });
    const moved = { code: 'identity-changed', reason: 'Ada has a new safety number' } as const;
    const garbled = { code: 'undecrypted', reason: 'it is garbled' } as const;
    const unreadable = [unread('a', moved), unread('b', garbled), unread('c'), unread('d', moved)];
    network.accepted.push(...unreadable.map(() => ({ kind: 'refused', reason: 'unreadable' }) as const));
    await network.intake().accept({ events: [], unreadable });
    expect(network.gaps).toEqual([
      moved,
      garbled,
      { code: 'lost', reason: expect.stringMatching(/^unreadable events: 1;.* why c`$/) },
    ]);
  });

  it('reports an event as unreadable that was read but could not be stored', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    const account = anAccount('net');
    const events = ['message:8', 'message:9'].map((key) => anEnvelope(account, 'hi', { eventKey: key }));
    network.accepted.push(
      { kind: 'refused', reason: 'unreadable' },
      { kind: 'refused', reason: 'rate-limited' },
    );
    await network.intake().accept({ events });
    expect(network.gaps).toEqual([
      { code: 'lost', reason: expect.stringMatching(/unreadable events: 1;.* why message:8`$/) },
    ]);
  });
});

describe('accounts', () => {
  it('shows and addresses a renamed account by its new name', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    network.intake().renamed('@renamed');
    expect(network.state()).toEqual({ kind: 'on', account: '@renamed' });
    expect(network.accounts.map(({ name }) => name)).toEqual(['@renamed']);
  });

  it('looks an account up again that its server knows under another identity', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    Object.assign(network.known, { id: 'other', name: '@other' });
    network.intake().trouble({
      ...{ kind: 'unreachable', code: 'server-changed', isOver: true },
      detail: 'Signal knows +1555 under another identity now',
    });
    await network.clock.advance(minute);
    network.intake().trouble(undefined);
    expect(network.state()).toEqual({ kind: 'on', account: '@other' });
    expect(network.accounts.at(-1)?.id).toBe('other');
  });
});

describe('a refused channel', () => {
  it('retries a refused account after 1, 5, 15 and 15 minutes and says when', async () => {
    const network = await aHostedNetwork();
    for (let times = 0; times < 4; times += 1) network.onIdentify.push(fails('channel_unauthorised'));
    await network.begin();
    let tried = 1;
    for (const minutes of [1, 5, 15, 15]) {
      expect(network.count('identify')).toBe(tried);
      expect(network.state()).toMatchObject({
        kind: 'trouble',
        problem: 'unauthorised',
        since: network.began,
        nextTryAt: network.clock.now() + minutes * minute,
      });
      await network.clock.advance(minutes * minute - 1);
      expect(network.count('identify')).toBe(tried);
      await network.clock.advance(1);
      tried += 1;
    }
    expect(network.count('start')).toBe(1);
    network.intake().trouble(undefined);
    expect(network.state()).toEqual({ kind: 'on', account: '@bot' });
  });

  it('restarts a channel that is refused while receiving, until it answers', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    expect(network.state()?.kind).toBe('on');
    network.onStart.push(async ({ trouble }) => trouble(refused));
    network.intake().trouble(refused);
    const downSince = network.clock.now();
    await network.clock.advance(minute);
    expect(network.count('start')).toBe(2);
    expect(network.state()).toMatchObject({ since: downSince, nextTryAt: network.clock.now() + 5 * minute });
    await network.clock.advance(5 * minute);
    expect(network.count('start')).toBe(3);
    // It has started, but the network hasn't responded yet.
    expect(network.state()?.kind).toBe('trouble');
    network.intake().trouble(undefined);
    expect(network.state()?.kind).toBe('on');
    // Any later refusal counts as a first one again.
    network.intake().trouble(refused);
    await network.clock.advance(minute);
    expect(network.count('start')).toBe(4);
  });

  it('counts a channel as up that reports nothing for a minute and a half', async () => {
    const network = await aHostedNetwork();
    network.onStart.push(async ({ trouble }) => trouble(refused));
    await network.begin();
    await network.clock.advance(minute);
    expect(network.state()?.kind).toBe('trouble');
    await network.clock.advance(100_000);
    expect(network.state()?.kind).toBe('on');
  });

  it('restarts a channel that ended for another reason than its credentials', async () => {
    const network = await aHostedNetwork();
    network.onStart.push(async ({ trouble }) =>
      trouble({ kind: 'unreachable', detail: '4014', isOver: true }),
    );
    await network.begin();
    await network.clock.advance(minute);
    expect(network.count('start')).toBe(2);
  });

  it('retries a channel with invalid settings, slowly', async () => {
    const network = await aHostedNetwork();
    network.onIdentify.push(fails('config_invalid'));
    await network.begin();
    await network.clock.advance(minute);
    expect(network.state()?.kind).not.toBe('off');
    expect(network.count('identify')).toBe(2);
  });
});

describe('the lease of an account', () => {
  const busy = { kind: 'busy', delayMs: 1 } as const;

  it('renews the lease while the channel is still starting', async () => {
    const network = await aHostedNetwork();
    const connected = Promise.withResolvers<void>();
    network.onStart.push(() => connected.promise);
    await network.begin();
    await network.clock.advance(30_000);
    expect(network.count('claim')).toBe(16);
    connected.resolve();
    await network.clock.advance(0);
    expect(network.state()?.kind).toBe('on');
    expect(network.count('start')).toBe(1);
  });

  it.each(['starting', 'receiving'])(
    'stops a channel that is %s when another process takes the lease',
    async (phase) => {
      const network = await aHostedNetwork();
      if (phase === 'starting') network.onStart.push(() => new Promise(() => undefined));
      await network.begin();
      expect(network.count('stop')).toBe(0);
      network.onClaim.push(async () => busy);
      await network.clock.advance(2000);
      expect(network.count('stop')).toBe(1);
      await network.clock.advance(2000);
      expect(network.count('start')).toBe(2);
      expect(network.state()?.kind).toBe('on');
    },
  );

  it('keeps the channel running while the store is unavailable for less than a minute', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    for (const code of ['store_unavailable', 'store_full'] as const)
      network.onClaim.push(...Array(14).fill(fails(code)));
    await network.clock.advance(2 * minute);
    expect(network.count('stop')).toBe(0);
    expect(network.state()?.kind).toBe('on');
  });

  it('reports from the first failed renewal that nothing is stored, until the store is back', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    network.onClaim.push(fails('store_full'), fails('store_full'));
    await network.clock.advance(4000);
    expect(network.state()).toMatchObject({ kind: 'trouble', code: 'not-stored', reason: 'store_full' });
    network.intake().trouble(undefined);
    expect(network.state()?.kind).toBe('trouble');
    await network.clock.advance(2000);
    expect(network.states.map(({ kind }) => kind)).toEqual(['starting', 'on', 'trouble', 'trouble', 'on']);
    expect(network.count('stop')).toBe(0);
  });

  it('renews the lease every five seconds where no other process could claim the account', async () => {
    const network = await aHostedNetwork({ isAlone: true });
    await network.begin();
    network.onClaim.push(fails('store_full'));
    await network.clock.advance(4_999);
    expect(network.state()?.kind).toBe('on');
    await network.clock.advance(1);
    expect(network.state()?.kind).toBe('trouble');
    await network.clock.advance(5_000);
    expect(network.state()?.kind).toBe('on');
  });

  it('stops the channel if the store is unavailable for longer than a minute', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    network.onClaim.push(...Array(40).fill(fails('store_unavailable')));
    await network.clock.advance(minute + 2000);
    expect(network.count('stop')).toBe(1);
    expect(network.state()?.kind).toBe('trouble');
    await network.clock.advance(10 * minute);
    expect(network.state()?.kind).toBe('on');
  });
});

describe('a hanging channel', () => {
  const never = () => new Promise<void>(() => undefined);

  it.each(['onIdentify', 'onStart'] as const)('retries a hanging %s after a deadline', async (call) => {
    const network = await aHostedNetwork();
    network[call].push(never);
    await network.begin();
    await network.clock.advance(2 * minute + 2000);
    expect(network.count(call === 'onStart' ? 'start' : 'identify')).toBe(2);
    expect(network.state()?.kind).toBe('on');
  });

  it('lets an intake store nothing after its channel was stopped', async () => {
    const network = await aHostedNetwork();
    await network.begin();
    const before = network.intake();
    before.trouble(refused);
    await network.clock.advance(minute);
    await expect(before.accept({ events: [] })).rejects.toMatchObject({ code: 'stale_epoch' });
    await expect(network.intake().accept({ events: [] })).resolves.toEqual([]);
  });
});

it('limits any wait that a network asks for', () => {
  for (const afterMs of [-1, 0, Number.NaN, 1e300, Number.POSITIVE_INFINITY, 'soon' as never]) {
    const retries = createRetries({});
    const fault = new ParleyError('channel_unavailable', 'not now', { retry: { kind: 'later', afterMs } });
    for (let times = 0; times < 10; times += 1) {
      const { waitMs } = retries.after(fault);
      expect(waitMs >= 500 && waitMs <= 5 * minute).toBe(true);
    }
  }
});

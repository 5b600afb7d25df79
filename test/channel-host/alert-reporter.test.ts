import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { HostedChannel } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { accountId, channelId, conversationId } from '#contracts/ids.ts';
import { createAlertReporter } from '../../src/channel-host/alert-reporter.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { conversationKeyOf } from '../../src/store/base/keys.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { manualClock } from '../agent/support/manual-clock.ts';
import { aMessage, aRoute, aWorker } from '../store/builders.ts';
import { aStore } from '../support/own-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

const patient = { timeout: patienceMs, interval: 10 };
const broken = channelId('carrier');
const works = channelId('test');

/** The messages queued in the outbox for the owner, oldest first. */
const readTold: StoreQuery<object, readonly string[]> = {
  query: 'readTold',
  run: async (tx) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select(['content', 'conversationKey'])
      .where('key', 'like', 'owner:%')
      .orderBy('place')
      .execute();
    return rows.map(({ content, conversationKey }) => `${conversationKey}: ${JSON.parse(content).text.text}`);
  },
};

async function aHome(): Promise<Store> {
  const { store } = await aStore();
  // The owner has written in the conversation "home" on the channel that works.
  await aWorker(store).accept(aMessage({ conversation: 'home', text: 'hi', sender: 'ann' }));
  return store;
}

/** Lets the owner write to another account of that channel. */
async function saysAt(store: Store, account: string, conversation: string): Promise<void> {
  const route = aRoute(conversation, { account: accountId(account) });
  const key = `${works}/${account}`;
  const lease = await store.write(claimAccount, { account: key, holder: 'boot-1', leaseMs: 60_000 });
  if (lease.kind !== 'held') throw new Error('the account is busy');
  const message = aMessage({ conversation, text: 'hi', sender: 'ann', item: { route } });
  const proposals = [{ ...message, conversationKey: conversationKeyOf(route) }];
  await store.write(acceptBatch, { account: key, epoch: lease.epoch, holder: 'boot-1', proposals });
}

async function aWatch({ store, owners = ['test:ann'] }: { store?: Store; owners?: readonly string[] } = {}) {
  const opened = store ?? (await aHome());
  const time = manualClock(Date.now());
  let resting = 0;
  /** Counts whether the reporter is idle between two rounds: only that pause lasts 5 s. */
  const clock: Clock = {
    now: time.now,
    wait: async (ms, signal) => {
      if (ms === 5_000) resting += 1;
      await time.wait(ms, signal);
      if (ms === 5_000) resting -= 1;
    },
  };
  const delivered: string[] = [];
  const watch = createAlertReporter({
    store: opened,
    clock,
    log: silentLog,
    texts: textsFor('en'),
    owners,
    localChannels: [channelId('page')],
    deliver: (key) => void delivered.push(key),
  });
  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await watch.stop();
    isStopped = true;
  };
  onTestFinished(stop);
  watch.onState(works, isBack, 'test/bot');
  /** Waits until the reporter is idle, then advances the clock. */
  const pass = async (ms: number) => {
    await vi.waitFor(() => expect(resting).toBe(1), patient);
    time.advance(ms);
  };
  const told = () => opened.read(readTold, {});
  const untilTold = (...texts: readonly RegExp[]) =>
    vi.waitFor(async () => {
      const all = await told();
      expect(all).toHaveLength(texts.length);
      for (const [index, text] of texts.entries()) expect(all[index]).toMatch(text);
    }, patient);
  const untilShown = (...texts: readonly RegExp[]) =>
    vi.waitFor(async () => {
      const shown = await watch.shown();
      expect(shown.map((notice) => notice.text)).toEqual(texts.map((text) => expect.stringMatching(text)));
    }, patient);
  return { store: opened, watch, pass, told, untilTold, untilShown, delivered, stop };
}

const isAway = { kind: 'trouble', problem: 'unreachable', reason: 'no answer', since: 0 } as const;
const isBack = { kind: 'on', account: 'bot' } as const;

describe('a channel that is down', () => {
  it('reports a channel that is down once, after a minute and through another channel', async () => {
    const { watch, pass, untilTold, untilShown, told, delivered } = await aWatch();
    watch.onState(broken, isAway);
    await pass(59_000);
    expect(await watch.shown()).toEqual([]);
    watch.onState(broken, { ...isAway, reason: 'still no answer', code: 'no-answer' });
    await pass(1_000);
    await untilShown(/carrier is down: it doesn’t answer \(still no answer\)/);
    await untilTold(/^test\/bot\/home: carrier is down: it doesn’t answer \(still no answer\)/);
    await vi.waitFor(() => expect(delivered).toEqual(['test/bot/home']), patient);
    watch.onState(broken, isAway);
    await pass(120_000);
    await untilShown(/carrier is down/);
    expect(await told()).toHaveLength(1);
  });

  it('reports nothing if the channel is back within the minute', async () => {
    const { watch, pass, told } = await aWatch();
    watch.onState(broken, isAway);
    await pass(59_000);
    watch.onState(broken, isBack, 'carrier/bot');
    await pass(600_000);
    watch.onGap(hosted, { reason: 'to see that the formatter has worked' });
    await vi.waitFor(async () => expect(await watch.shown()).toHaveLength(1), patient);
    expect(await watch.shown()).toMatchObject([
      { kind: 'events-missed', text: expect.stringContaining('missed messages in carrier and can’t') },
    ]);
    expect((await told()).filter((text) => text.includes('is down'))).toEqual([]);
  });

  it('withdraws the alert and reports the recovery once, when the channel stays up', async () => {
    const { watch, pass, untilTold, untilShown, told } = await aWatch();
    watch.onState(broken, isAway);
    await pass(60_000);
    await untilTold(/is down/);
    watch.onState(broken, isBack, 'carrier/bot');
    await untilShown();
    watch.onState(broken, isAway);
    await pass(60_000);
    await untilShown(/is down.*\(2 times\)/);
    expect(await told()).toHaveLength(1);
    watch.onState(broken, isBack, 'carrier/bot');
    await untilShown();
    await pass(301_000);
    await untilTold(/is down/, /home: carrier is back/);
    await pass(600_000);
    expect(await told()).toHaveLength(2);
  });

  it('reports a problem at once that only a person can fix', async () => {
    const { watch, untilTold } = await aWatch();
    watch.onState(broken, { kind: 'trouble', problem: 'unauthorised', reason: 'token revoked', since: 0 });
    await untilTold(/carrier rejects my credentials: token revoked/);
    watch.onState(channelId('pigeon'), {
      kind: 'trouble',
      problem: 'challenge',
      reason: 'solve the captcha',
      since: 0,
    });
    await untilTold(/carrier/, /pigeon asks for a captcha.*solve the captcha/);
  });

  it('sends no alert through the channel that is down, nor to anybody but owners', async () => {
    const { watch, untilShown, told } = await aWatch();
    watch.onState(works, { kind: 'trouble', problem: 'unauthorised', reason: 'token revoked', since: 0 });
    await untilShown(/test rejects my credentials/);
    expect(await told()).toEqual([]);
    const stranger = await aWatch({ owners: [] });
    stranger.watch.onState(broken, {
      kind: 'trouble',
      problem: 'unauthorised',
      reason: 'token revoked',
      since: 0,
    });
    await stranger.untilShown(/carrier rejects my credentials/);
    await stranger.stop();
    expect(await stranger.told()).toEqual([]);
  });

  it('keeps an alert over a restart without sending it again', async () => {
    const first = await aWatch();
    first.watch.onState(broken, isAway);
    await first.pass(60_000);
    await first.untilTold(/is down/);
    await first.stop();
    const second = await aWatch({ store: first.store });
    second.watch.onState(broken, isAway);
    await second.pass(60_000);
    await second.untilShown(/is down/);
    second.watch.onState(broken, isBack, 'carrier/bot');
    await second.untilShown();
    await second.pass(301_000);
    await second.untilTold(/is down/, /is back/);
  });

  it('drops the alert silently when the channel is turned off', async () => {
    const { watch, pass, untilTold, untilShown, told } = await aWatch();
    watch.onState(broken, isAway);
    await pass(60_000);
    await untilTold(/is down/);
    watch.onState(broken, { kind: 'off', reason: 'by the configuration' });
    await untilShown();
    await pass(600_000);
    expect(await told()).toHaveLength(1);
  });
});

// The reporter reads nothing else of a channel.
const hosted = {
  definition: { id: broken },
  account: { id: accountId('bot'), name: 'bot' },
} as unknown as HostedChannel;

describe('other alerts', () => {
  it('gathers repeated problems into one message that counts them', async () => {
    const { watch, pass, untilTold, untilShown } = await aWatch();
    const conversation = conversationId('group-1');
    for (let times = 0; times < 3; times++) watch.onGap(hosted, { conversation, reason: 'no history' });
    await untilShown(/missed messages in carrier\/bot\/group-1 .*no history.*\(3 times\)/);
    await pass(6_000);
    await untilTold(/missed messages in .*group-1 and can’t fetch them: no history\. \(3 times\)/);
  });

  it("ends a lane's alert when the lane moves, even after the process that raised it", async () => {
    const first = await aWatch();
    first.watch.onAlarm('lane-1', 12_000);
    await first.untilTold(/lane-1 has been stuck for 12 s/);
    await first.stop();
    // The alarm survives into the next process and applies across processes: their sweeps see whether the lane moves.
    const second = await aWatch({ store: first.store });
    await second.pass(6_000);
    expect(await second.watch.openAlarms()).toEqual(['lane-1']);
    second.watch.onAlarm('lane-1', 13_000);
    await second.untilShown(/lane-1 .* 13 s/);
    second.watch.onAlarmOver('lane-1');
    await second.untilShown();
    await second.pass(301_000);
    await second.untilTold(/lane-1 .* 12 s/, /lane-1 is moving again/);
  });

  it('sends alerts from a process that is on standby for the channel', async () => {
    const { watch, untilTold } = await aWatch();
    const reason = 'another process receives for this account';
    watch.onState(works, { kind: 'standby', reason }, 'test/bot');
    watch.onAlarm('lane-1', 12_000);
    await untilTold(/lane-1/);
  });

  it('sends alerts once a channel is up that reaches the owner', async () => {
    const { watch, pass, told, untilTold, untilShown } = await aWatch();
    watch.onState(works, isAway);
    watch.onAlarm('lane-1', 12_000);
    await untilShown(/lane-1/);
    await pass(6_000);
    expect(await told()).toEqual([]);
    watch.onState(works, isBack, 'test/bot');
    await pass(6_000);
    await untilTold(/lane-1/);
  });

  it("sends an account's alert through another account of its network", async () => {
    const store = await aHome();
    await saysAt(store, 'worker', 'office');
    const { watch, untilTold } = await aWatch({ store });
    // As after a start with a rejected token: it isn't known which account it belongs to.
    const trouble = { kind: 'trouble', problem: 'unauthorised', reason: 'revoked', since: 0 } as const;
    watch.onState('test.work', trouble, undefined);
    await untilTold(/^test\/bot\/home: test\.work rejects my credentials/);
    watch.onState('test.work', isBack, 'test/worker');
    watch.onAlarm('lane-1', 12_000);
    await untilTold(/rejects/, /^test\/worker\/office: lane-1/);
  });

  it('sends no alert through the affected account, even if no other reaches the owner', async () => {
    const store = (await aStore()).store;
    await saysAt(store, 'worker', 'office');
    const { watch, untilShown, told, pass } = await aWatch({ store });
    watch.onState('test.work', isBack, 'test/worker');
    const trouble = { kind: 'trouble', problem: 'unauthorised', reason: 'revoked', since: 0 } as const;
    watch.onState('test.work', trouble, 'test/worker');
    await untilShown(/test\.work rejects my credentials/);
    await pass(6_000);
    watch.onState('test.work', isBack, 'test/worker');
    await untilShown();
    expect(await told()).toEqual([]);
  });

  it('lets the owner dismiss an alert', async () => {
    const { watch, untilShown } = await aWatch();
    watch.onAlarm('lane-1', 12_000);
    await untilShown(/lane-1/);
    const [notice] = await watch.shown();
    expect(await watch.dismiss(notice?.id ?? '')).toBe(true);
    expect(await watch.shown()).toEqual([]);
    expect(await watch.dismiss('no such notice')).toBe(false);
  });

  it('records an alert once the store is available again', async () => {
    const store = await aHome();
    let isGone = true;
    const shaky: Store = {
      ...store,
      write: (command, input) => (isGone ? Promise.reject(new Error('away')) : store.write(command, input)),
    };
    const { watch, pass, untilTold } = await aWatch({ store: shaky });
    watch.onAlarm('lane-1', 12_000);
    await pass(5_000);
    isGone = false;
    await pass(5_000);
    await untilTold(/lane-1/);
  });
});

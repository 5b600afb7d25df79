/** Numbers and refusals from Telegram, or from a server in its place, neither stop the bot nor speed it up. */

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { longestWaitMs, shortestGapMs } from '#channel-kit/remote-number.ts';
import { channelId } from '#contracts/ids.ts';
import { readRefusal } from '../../../channels/telegram/failures.ts';
import { botOf } from '../../../channels/telegram/ids.ts';
import { readBatch } from '../../../channels/telegram/inbound.ts';
import { channel } from '../../../channels/telegram/index.ts';
import { createChannelHost } from '../../../src/channel-host/channel-host.ts';
import { noLiveEvents } from '../../../src/queue/live-events.ts';
import { startTelegramServer, type TelegramServer } from '../../platforms/telegram/server.ts';
import { isLong } from '../../support/long-run.ts';
import { sharedFolder } from '../../support/own-folder.ts';
import { openOwnStore } from '../../support/own-store.ts';
import { silentLog } from '../../support/silent-log.ts';
import { createSteppedClock } from '../../support/stepped-clock.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { ada, newAdapter } from './telegram-setup.ts';

const forever = new AbortController().signal;
let server: TelegramServer;

beforeEach(async () => {
  server = await startTelegramServer();
});
afterEach(() => server.close());

const polls = () => server.calls.filter(({ method }) => method === 'getUpdates').length;
const refusal = (code: number, parameters?: Readonly<Record<string, unknown>>) =>
  ({ kind: 'refuse', code, description: `refused with ${code}`, ...(parameters && { parameters }) }) as const;

/** Creates the adapter on its own clock; the intake accepts everything. */
async function anAdapter() {
  const clock = createSteppedClock();
  const intake = new RecordingIntake();
  const adapter = newAdapter(server, { clock });
  onTestFinished(() => adapter.stop());
  await adapter.identify(forever);
  return { clock, intake, begin: () => adapter.start(intake) };
}

const hostile = [-1, 0, Number.NaN, 1e300, 3_000_000, 86_400, '7', 'soon', null, {}, undefined];

describe('the pace of polls', () => {
  it.each(hostile.map((one) => [one]))('paces its polls when told to wait for %s s', async (seconds) => {
    const { clock, intake, begin } = await anAdapter();
    server.fault(refusal(429, { retry_after: seconds }), { method: 'getUpdates', times: 12 });
    server.userSends({ from: ada, text: 'still arrives' });
    const began = clock.now();
    await begin();
    await clock.until(() => intake.texts.length === 1);
    expect(clock.now() - began).toBeGreaterThanOrEqual(12 * shortestGapMs);
    // A wait of minutes is reported with its end.
    const isLong = typeof seconds === 'number' && seconds > 30;
    const shown = intake.troubles.filter((problem) => problem?.nextTryAt !== undefined);
    expect(shown.map((problem) => problem?.nextTryAt)).toEqual(
      Array.from({ length: isLong ? 12 : 0 }, (_, index) => began + (index + 1) * longestWaitMs),
    );
    for (const waitMs of clock.waits) expect(waitMs <= longestWaitMs).toBe(true);
  });

  it.each([
    ['nothing', []],
    ['an object', {}, 'isn’t the Bot API'],
    ['words', 'no', 'isn’t the Bot API'],
    ['null', null, 'isn’t the Bot API'],
    ['an update without an id', [{ message: {} }], 'without an id'],
    ['an id of 1e300', [{ update_id: 1e300, message: {} }], 'without an id'],
    ['one update again and again', [{ update_id: 7, message: {} }]],
  ])('paces its polls when each is answered at once with %s', async (_, result, shown = undefined) => {
    const { clock, intake, begin } = await anAdapter();
    server.fault({ kind: 'answer', result }, { method: 'getUpdates', times: 12 });
    server.userSends({ from: ada, text: 'still arrives' });
    const began = clock.now();
    await begin();
    await clock.until(() => intake.texts.length === 1);
    // The first poll only checks the connection, the next may still bring updates, and 12 faults are 12 polls.
    expect(clock.now() - began).toBeGreaterThanOrEqual(9 * shortestGapMs);
    // An answer that blocks everything after it is reported once, until it is over.
    const problems =
      shown === undefined ? [] : [{ kind: 'unreachable', detail: expect.stringContaining(shown) }];
    expect(intake.troubles.slice(0, -1)).toEqual(problems.map((problem) => expect.objectContaining(problem)));
    expect(intake.troubles.at(-1)).toBeUndefined();
  });

  it('polls without a pause after a full batch and after new updates', async () => {
    const { clock, intake, begin } = await anAdapter();
    for (let count = 0; count < 250; count += 1) server.userSends({ from: ada, text: `${count}` });
    await begin();
    await intake.waitFor(() => intake.texts.length === 250);
    expect(clock.waits).toEqual([]);
  });

  it('gives up a poll that is never answered', async () => {
    server.fault({ kind: 'silence' }, { method: 'getUpdates' });
    server.userSends({ from: ada, text: 'still arrives' });
    const { clock, intake, begin } = await anAdapter();
    const realTimeout = AbortSignal.timeout;
    onTestFinished(() => {
      AbortSignal.timeout = realTimeout;
    });
    const limits: number[] = [];
    AbortSignal.timeout = (ms) => {
      limits.push(ms);
      return realTimeout(Math.min(ms, 50));
    };
    await begin();
    await clock.until(() => intake.texts.length === 1);
    expect(limits[0]).toBe(15_000);
  });
});

describe('a refused bot', () => {
  const dataDir = sharedFolder();
  const store = openOwnStore(dataDir);

  /** The full setup: the host, which restarts whatever has ended, and the adapter. */
  async function aHost() {
    const clock = createSteppedClock();
    const intake = new RecordingIntake();
    const host = createChannelHost({
      ...{ store: store(), holder: 'boot-1', clock, log: silentLog, live: noLiveEvents, receives: true },
      random: () => 0,
      intakeFor: () => ({ accept: (batch) => intake.accept(batch) }),
      onReceiving: () => undefined,
      onState: () => undefined,
      onGap: () => undefined,
    });
    onTestFinished(async () => {
      let isStopped = false;
      void host.stopReceiving().then(() => {
        isStopped = true;
      });
      await clock.until(() => isStopped);
    });
    void host.run({
      id: channelId('telegram'),
      load: async () => channel as never,
      settings: { token: server.token, apiRoot: server.apiRoot, pollSeconds: 5 },
      deps: { dataDir: dataDir() },
    });
    return { clock, intake, state: () => host.states()[0]?.state };
  }

  it.each([
    [400, 1, 'getUpdates'],
    [401, 1, 'getUpdates'],
    [404, 1, 'getUpdates'],
    [409, 1, 'getUpdates'],
    [409, 9, 'getUpdates'],
    [418, 9, 'getUpdates'],
    [429, 9, 'getUpdates'],
    [500, 9, 'getUpdates'],
    [401, 3, 'getMe'],
    [404, 3, 'getMe'],
    [429, 3, 'getMe'],
    [401, 1, 'deleteWebhook'],
  ])('receives again without help after error %i, %i times, on %s', async (code, times, method) => {
    server.fault(refusal(code), { method, times });
    server.userSends({ from: ada, text: 'still arrives' });
    const { clock, intake, state } = await aHost();
    await clock.until(() => intake.texts.length === 1 && state()?.kind === 'on');
    expect(intake.texts).toEqual(['still arrives']);
  });

  it('keeps reporting a second poller between two of its refusals', async () => {
    const { clock, intake, begin } = await anAdapter();
    let isRivalOpen = false;
    const rival = () => {
      if (isRivalOpen || !server.updates.isPolled) return;
      isRivalOpen = true;
      const answer = () => {
        isRivalOpen = false;
      };
      server.updates.poll(0, { limit: 1, isLong: true, answer });
    };
    await begin();
    await clock.until(() => {
      rival();
      return intake.troubles.some((one) => one?.isOver);
    });
    expect(intake.troubles.map((one) => one?.kind)).toEqual([undefined, 'conflict', 'conflict']);
    // After the restart it polls with patience: an immediate answer would prove nothing.
    await begin();
    await clock.until(() => {
      rival();
      return intake.troubles.length === 5;
    });
    expect(intake.troubles.map((one) => one?.kind).slice(3)).toEqual(['conflict', 'conflict']);
  });

  it('waits a minute after a refusal, then five, and says when it tries next', async () => {
    server.fault(refusal(401), { method: 'getUpdates', times: 2 });
    const { clock, state } = await aHost();
    const nextTry = () => {
      const now = state();
      return now?.kind === 'trouble' && now.nextTryAt !== undefined ? now.nextTryAt - clock.now() : 0;
    };
    await clock.until(() => nextTry() > 50_000);
    expect([polls(), state()]).toMatchObject([1, { problem: 'unauthorised' }]);
    await clock.until(() => nextTry() > 200_000);
    expect(polls()).toBe(2);
    await clock.until(() => state()?.kind === 'on');
    expect(polls()).toBeGreaterThanOrEqual(3);
  });
});

describe('numbers from Telegram', () => {
  const bot = botOf({ id: 700, username: 'ParleyBot' });
  const now = Date.UTC(2026, 10, 22);
  const chat = { id: 5, type: 'private', first_name: 'A' };
  const message = (extra: object) => ({
    update_id: 5,
    message: { message_id: 8, date: now / 1000, chat, from: { id: 5 }, text: 'hi @ParleyBot', ...extra },
  });
  const odd = fc.oneof(
    fc.constantFrom(-1, 0, 1e300, -1e300, 2 ** 53, 1.5, '7', 'soon', null, [], {}),
    fc.double(),
    fc.integer(),
  );

  it('keeps every message that is readable without a bad number, and dates it now', () => {
    const fields = fc.constantFrom('date', 'edit_date', 'media_group_id', 'message_thread_id');
    fc.assert(
      fc.property(fields, odd, odd, odd, (field, value, offset, length) => {
        const entities = [
          { type: 'mention', offset, length },
          { type: 'mention', offset: 3, length: 10 },
        ];
        const document = { file_id: 'f', file_size: value };
        const batch = readBatch([message({ entities, document, [field]: value })], bot, now);
        expect(batch.unreadable).toEqual([]);
        const [envelope] = batch.events;
        expect(envelope?.event).toMatchObject({ kind: 'message', text: 'hi @ParleyBot', mentionsBot: true });
        expect(new Date(envelope?.sentAt ?? Number.NaN).getUTCFullYear()).toBeGreaterThanOrEqual(2010);
        expect(envelope?.receivedAt).toBe(envelope?.sentAt);
        const size = envelope?.event.kind === 'message' ? envelope.event.attachments[0]?.sizeBytes : 0;
        expect(size === undefined || (Number.isSafeInteger(size) && size >= 0)).toBe(true);
      }),
      { numRuns: isLong ? 20_000 : 500 },
    );
  });

  it('accepts only ids that can be sent back, or calls the update unreadable', () => {
    fc.assert(
      fc.property(odd, odd, odd, odd, (update_id, message_id, id, to) => {
        const update = {
          ...message({ message_id, migrate_to_chat_id: to, chat: { ...chat, id } }),
          update_id,
        };
        const { events, unreadable, nextOffset } = readBatch([update], bot, now);
        expect(events.length + unreadable.length).toBe(1);
        expect(nextOffset === undefined || Number.isSafeInteger(nextOffset)).toBe(true);
        for (const { event, route } of events) {
          expect(Number.isSafeInteger(Number(route.conversation))).toBe(true);
          if (event.kind === 'migrated') expect(Number(event.to)).toBeLessThan(0);
        }
      }),
      { numRuns: isLong ? 20_000 : 500 },
    );
  });

  it('reads only finite numbers from a refusal', () => {
    for (const value of hostile) {
      const parameters = { retry_after: value, migrate_to_chat_id: value };
      const read = readRefusal(Object.assign(new Error('no'), { error_code: 429, parameters }));
      expect(read?.askedWaitMs === undefined || Number.isSafeInteger(read.askedWaitMs)).toBe(true);
      expect(read?.migratedTo === undefined || /^-?\d+$/.test(read.migratedTo)).toBe(true);
    }
  });
});

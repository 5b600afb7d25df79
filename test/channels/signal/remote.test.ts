/** Whatever signal-cli-rest-api refuses, leaves unanswered or repeats neither ends receiving nor speeds it up. */

import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { longestJson, longestText } from '#channel-kit/read-json.ts';
import { shortestGapMs } from '#channel-kit/remote-number.ts';
import type { ChannelGap } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import { SignalApi } from '../../../channels/signal/api.ts';
import { signalConfig } from '../../../channels/signal/config.ts';
import { botOf } from '../../../channels/signal/ids.ts';
import { readFrames } from '../../../channels/signal/inbound.ts';
import { startPoll } from '../../../channels/signal/poll.ts';
import { startSocket } from '../../../channels/signal/socket.ts';
import { absurdJson } from '../../support/absurd-json.ts';
import { isLong } from '../../support/long-run.ts';
import { silentLog } from '../../support/silent-log.ts';
import { createSteppedClock } from '../../support/stepped-clock.ts';
import { watchParsing } from '../../support/watch-parsing.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { aSignalStage, type SignalStage, type Way } from './signal-setup.ts';

const forever = new AbortController().signal;
const stages: SignalStage[] = [];

afterEach(async () => {
  for (const stage of stages.splice(0)) await stage.close();
});

/** Creates the adapter on its own clock. */
async function aChannel(way: Way) {
  const stage = await aSignalStage(way);
  stages.push(stage);
  const clock = createSteppedClock();
  const intake = new RecordingIntake();
  const adapter = stage.newAdapter({ clock });
  let isStopped = false;
  onTestFinished(async () => {
    void adapter.stop().then(() => {
      isStopped = true;
    });
    await clock.until(() => isStopped);
  });
  const begin = async () => {
    let isBegun = false;
    void adapter.start(intake).then(() => {
      isBegun = true;
    });
    await clock.until(() => isBegun);
  };
  return { ...stage, clock, intake, adapter, begin };
}

describe.each(['socket', 'polling'] as const)('receiving by %s', (way) => {
  it.each([400, 401, 404, 429, 500, 503])('continues receiving after a %i without help', async (status) => {
    const { server, ada, clock, intake, adapter, begin } = await aChannel(way);
    await adapter.identify(forever);
    server.fault({ kind: 'refuse', status, error: 'not now' }, { path: '/v1/receive', times: 6 });
    const began = clock.now();
    await begin();
    await clock.until(() => intake.troubles.some((one) => one?.kind === 'unreachable'));
    await clock.until(() => server.openSockets === 1 || way === 'polling');
    server.people.writes({ from: ada, text: 'still arrives' });
    await clock.until(() => intake.texts.length === 1 && intake.troubles.at(-1) === undefined);
    // After a 401, the client itself makes the handshake a second time.
    expect(clock.now() - began).toBeGreaterThanOrEqual(3 * shortestGapMs);
  });
});

describe('absurd data', () => {
  const [[, longText], , [, manyObjects], [, bottomless]] = absurdJson;
  it.each([
    ['socket', longText],
    ['socket', manyObjects],
    ['polling', longText],
    ['polling', bottomless],
  ] as const)('keeps an absurd message raw once and receives on, by %s', async (way, absurd) => {
    const { server, ada, clock, intake, adapter, begin } = await aChannel(way);
    await adapter.identify(forever);
    await begin();
    server.people.writes({ from: ada, text: 'before' });
    await clock.until(() => intake.texts.length === 1);
    const dataMessage = { timestamp: 1, body: JSON.parse(absurd) as unknown };
    const most = watchParsing();
    server.emit({ account: server.number, envelope: { sourceUuid: ada.uuid, dataMessage } });
    await clock.until(() => intake.unreadable.length === 1);
    server.people.writes({ from: ada, text: 'behind' });
    await clock.until(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['before', 'behind']);
    expect(intake.unreadable).toMatchObject([{ raw: expect.stringContaining('sourceUuid') }]);
    expect(most.bytes).toBeLessThanOrEqual(way === 'socket' ? longestJson : longestText);
  });

  it('reports a gap after an oversized frame, which closes the connection', async () => {
    const { server, ada, clock, intake, adapter, begin } = await aChannel('socket');
    await adapter.identify(forever);
    await begin();
    server.emit({ account: server.number, envelope: { sourceUuid: 'x'.repeat(longestText) } });
    await clock.until(() => intake.gaps.length === 1);
    expect(intake.gaps).toMatchObject([{ code: 'cut-off' }]);
    server.people.writes({ from: ada, text: 'behind' });
    await clock.until(() => intake.texts.length === 1);
    expect(intake.unreadable).toEqual([]);
  });
});

it.each(['/v1/about', '/v1/accounts'])(
  'fails a start for now if %s is refused, and succeeds the next time',
  async (path) => {
    const { server, adapter } = await aChannel('socket');
    for (const status of [400, 401, 404, 500]) {
      server.fault({ kind: 'refuse', status, error: 'not now' }, { path, times: 1 });
      await adapter.identify(forever).catch((error: unknown) => {
        expect(error instanceof ParleyError && error.code.startsWith('channel_')).toBe(true);
      });
    }
    await expect(adapter.identify(forever)).resolves.toMatchObject({ id: server.account.uuid });
  },
);

it('paces polls that bring little, and full ones at a tenth of that', async () => {
  const { server, ada, dataDir } = await aChannel('polling');
  for (let count = 0; count < 35; count += 1) server.people.writes({ from: ada, text: `${count}` });
  // Nothing else waits on this clock, so however slow a poll is, its pause is as long as it requested.
  const clock = createSteppedClock();
  const config = signalConfig.parse({ apiUrl: server.url });
  const taken: unknown[] = [];
  const poll = startPoll({
    ...{ api: new SignalApi(config), config, clock, log: silentLog, number: server.number },
    markPath: join(dataDir, 'polling'),
    isClear: () => true,
    take: async (notifications) => void taken.push(...notifications),
    onTrouble: () => undefined,
    onGap: () => undefined,
  });
  const polls = () => server.calls.filter(({ path }) => path.startsWith('/v1/receive')).length;
  await clock.until(() => taken.length === 35);
  expect(clock.waits.filter((ms) => ms === shortestGapMs / 10).length).toBeGreaterThanOrEqual(2);
  const before = polls();
  const pausedAt = clock.now();
  await clock.until(() => polls() >= before + 10);
  expect(clock.now() - pausedAt).toBeGreaterThanOrEqual(8 * shortestGapMs);
  await poll.stop();
});

it("reports a poll's messages as lost if receiving ends before they are kept", async () => {
  const { server, ada, dataDir } = await aChannel('polling');
  for (const text of ['one', 'two']) server.people.writes({ from: ada, text });
  const clock = createSteppedClock();
  const config = signalConfig.parse({ apiUrl: server.url });
  const gaps: ChannelGap[] = [];
  let tries = 0;
  const poll = startPoll({
    ...{ api: new SignalApi(config), config, clock, log: silentLog, number: server.number, lastPollMs: 20 },
    markPath: join(dataDir, 'polling'),
    isClear: () => true,
    take: async () => {
      tries += 1;
      throw new Error('no room');
    },
    onTrouble: () => undefined,
    onGap: (gap) => void gaps.push(gap),
  });
  await clock.until(() => tries > 1);
  await poll.stop();
  expect(gaps).toMatchObject([{ code: 'lost', reason: expect.stringContaining('in time') }]);
});

it('gives up a handshake that is never answered', async () => {
  const { server, clock } = await aChannel('socket');
  server.fault({ kind: 'hang' }, { path: '/v1/receive' });
  const downs: string[] = [];
  let isOpen = false;
  const socket = startSocket({
    url: `${server.url.replace('http', 'ws')}/v1/receive/${encodeURIComponent(server.account.number)}`,
    clock,
    heartbeatMs: 1000,
    openLimitMs: 50,
    onFrame: () => undefined,
    onOpen: () => {
      isOpen = true;
    },
    onDown: (reason) => void downs.push(reason),
  });
  onTestFinished(() => socket.stop());
  await clock.until(() => isOpen);
  expect(downs).toEqual(['the server accepted the connection but didn’t answer']);
});

it('follows a server that restarts in the other mode', async () => {
  const { server, ada, clock, intake, adapter, begin } = await aChannel('polling');
  await adapter.identify(forever);
  await begin();
  server.platform.mode = 'json-rpc';
  await clock.until(() => intake.troubles.some((one) => one?.isOver));
  let isStopped = false;
  void adapter.stop().then(() => {
    isStopped = true;
  });
  await clock.until(() => isStopped);
  await begin();
  await clock.until(() => server.openSockets === 1);
  server.people.writes({ from: ada, text: 'by the socket' });
  await clock.until(() => intake.texts.includes('by the socket'));
});

describe('numbers from Signal', () => {
  const aci = '00000000-0000-4000-8000-000000000001';
  const bot = botOf({ aci: '00000000-0000-4000-8000-000000000002', number: '+15550001111', name: 'Parley' });
  const known = {
    bot,
    nameOf: () => undefined,
    originalOf: () => 0,
    groupOf: () => undefined,
    learn: () => undefined,
  };
  const odd = fc.oneof(
    fc.constantFrom(-1, 0, 1e300, 8.64e15, '7', 'soon', null, undefined, {}),
    fc.double(),
    fc.integer(),
  );

  it('keeps every message that can be read without a bad number', () => {
    fc.assert(
      fc.property(odd, odd, (receipt, size) => {
        const attachments = [{ id: 'a', contentType: 'image/png', size }];
        const envelope = {
          sourceUuid: aci,
          timestamp: 5,
          serverReceivedTimestamp: receipt,
          dataMessage: { timestamp: 5, message: 'hi', attachments },
        };
        const { events, unreadable } = readFrames([{ account: bot.number, envelope }], known, [99]);
        expect(unreadable).toEqual([]);
        expect(events[0]).toMatchObject({ sentAt: 5, event: { text: 'hi' } });
        // Without a time from the server, it is the time of arrival here.
        expect(events[0]?.receivedAt).toBe(Number.isFinite(receipt) ? receipt : 99);
      }),
      { numRuns: isLong ? 20_000 : 300 },
    );
  });
});

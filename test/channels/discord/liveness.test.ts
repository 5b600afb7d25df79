/** No state of the gateway lasts forever: whatever doesn't come is given up on, and whatever is refused is retried. */
import { describe, expect, it } from 'vitest';
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import type { Clock } from '#contracts/clock.ts';
import { IdentifyPace } from '../../../channels/discord/gateway.ts';
import { hastyClock } from '../hasty-clock.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { aDiscordStage, aText, type DiscordStage, forever } from './discord-stage.ts';

/** Real time plus what the test adds; waits are cut short, and every requested wait is recorded. */
function aTime() {
  let added = 0;
  const waits: number[] = [];
  const clock: Clock = {
    now: () => hastyClock.now() + added,
    wait: (ms, signal) => {
      waits.push(ms);
      return hastyClock.wait(ms, signal);
    },
  };
  const pass = (ms: number) => {
    added += ms;
  };
  const passUntil = async (stepMs: number, isSo: () => boolean) => {
    for (; !isSo(); await hastyClock.wait(10)) pass(stepMs);
  };
  return { clock, waits, pass, passUntil };
}

const readyPatienceMs = 30_000;
const post = 'POST /channels/:channel/messages';

async function aBot(options: Parameters<typeof aDiscordStage>[0] = {}) {
  const stage = await aDiscordStage(options);
  const time = aTime();
  const intake = new RecordingIntake();
  const begin = () => stage.begin(intake, { clock: time.clock });
  return { ...stage, time, intake, begin };
}

/** Sends a message and waits until it is received, however long it takes. */
async function hears(
  { server, ada, general }: Pick<DiscordStage, 'server' | 'ada' | 'general'>,
  intake: RecordingIntake,
  text: string,
): Promise<void> {
  server.people.sends({ from: ada, channel: general, text });
  await intake.waitFor(() => intake.texts.includes(text));
}

describe('a silent gateway', () => {
  it('identifies again if a resume is not answered, and reads what was missed', async () => {
    const bot = await aBot();
    const { server, ada, general, time, intake } = bot;
    await bot.begin();
    await hears(bot, intake, 'one');
    server.gateway.withheld.add('RESUMED');
    server.gateway.cut();
    await server.waitFor(() => server.gateway.counts.resumes === 1);
    server.people.sends({ from: ada, channel: general, text: 'told by nobody' });
    server.gateway.withheld.clear();
    // A resume that is merely slow isn't abandoned.
    time.pass(readyPatienceMs - 5_000);
    await hastyClock.wait(10);
    expect(server.gateway.counts).toMatchObject({ identifies: 1, connections: 2 });
    time.pass(5_000);
    await server.waitFor(() => server.gateway.counts.identifies === 2);
    await intake.waitFor(() => intake.texts.includes('told by nobody'));
    await hears(bot, intake, 'three');
    expect(intake.texts).toEqual(['one', 'told by nobody', 'three']);
    expect(intake.troubles.at(-1)).toBeUndefined();
  });

  it.each(['HELLO', 'READY'] as const)(
    'dials again if %s does not come at the start, and reports that meanwhile',
    async (what) => {
      const bot = await aBot();
      const { server, time, intake } = bot;
      server.gateway.withheld.add(what);
      const begun = bot.begin();
      await server.waitFor(
        () => server.gateway.counts[what === 'HELLO' ? 'connections' : 'identifies'] === 1,
      );
      time.pass(readyPatienceMs);
      await begun;
      expect(intake.troubles.at(-1)).toMatchObject({
        kind: 'unreachable',
        detail: expect.stringContaining('did not answer in time'),
      });
      server.gateway.withheld.clear();
      time.pass(readyPatienceMs);
      await hears(bot, intake, 'hello');
      await intake.waitFor(() => intake.troubles.at(-1) === undefined);
    },
  );

  it('dials again if an open socket stays silent', async () => {
    const bot = await aBot({ heartbeatIntervalMs: 1_000 });
    const { server, intake } = bot;
    await bot.begin();
    server.gateway.goSilent();
    const { connections } = server.gateway.counts;
    await server.waitFor(() => server.gateway.counts.connections > connections);
    server.gateway.clearFaults();
    await hears(bot, intake, 'back');
  });

  it('resumes if heartbeats are not answered, even while events arrive', async () => {
    const bot = await aBot({ heartbeatIntervalMs: 1_000 });
    const { server, intake } = bot;
    await bot.begin();
    server.gateway.acknowledges = false;
    await hears(bot, intake, 'flows');
    await server.waitFor(() => server.gateway.counts.resumes === 1);
    server.gateway.clearFaults();
    await hears(bot, intake, 'resumed');
    expect(server.gateway.counts.identifies).toBe(1);
  });
});

describe('sessions', () => {
  it('gives up a session after three attempts if its address is gone', async () => {
    const bot = await aBot();
    const { server, intake } = bot;
    server.resumeUrl = 'ws://127.0.0.1:1/gone';
    await bot.begin();
    await hears(bot, intake, 'one');
    server.resumeUrl = undefined;
    server.gateway.cut();
    await server.waitFor(() => server.gateway.counts.identifies === 2);
    await hears(bot, intake, 'two');
    expect(server.gateway.counts.resumes).toBe(0);
  });

  it.each([
    ['is refused', 0],
    ['is not answered', 10_000],
  ])(
    'resumes a session after an outage in which every attempt %s, and receives missed edits',
    async (_, afterMs) => {
      const bot = await aBot();
      const { server, ada, general, time, intake } = bot;
      await bot.begin();
      const message = server.people.sends({ from: ada, channel: general, text: 'one' });
      await intake.waitFor(() => intake.texts.includes('one'));
      if (afterMs === 0) await server.goAway();
      else {
        server.gateway.withheld.add('OPEN');
        server.fault({ kind: 'page', status: 502 }, { times: Number.POSITIVE_INFINITY });
        server.gateway.cut();
      }
      server.people.edits(message, 'two');
      await time.passUntil(afterMs, () => time.waits.includes(16_000));
      server.clearFaults();
      await server.comeBack();
      time.pass(afterMs);
      await hears(bot, intake, 'three');
      expect(intake.events.map(({ event }) => event.kind)).toEqual(['message', 'edit', 'message']);
      expect(server.gateway.counts).toMatchObject({ identifies: 1, resumes: 1 });
    },
  );

  it.each(['not an address', 'http://127.0.0.1/x', 7])(
    'resumes at the original address if the session names %s instead',
    async (url) => {
      const bot = await aBot();
      const { server, intake } = bot;
      server.resumeUrl = url as string;
      await bot.begin();
      server.gateway.cut();
      await server.waitFor(() => server.gateway.counts.resumes === 1);
      await hears(bot, intake, 'resumed');
    },
  );

  it('starts sessions ever more slowly if they keep being called invalid', async () => {
    const bot = await aBot({ identifyIntervalMs: 3_600_000 });
    const { server, time } = bot;
    await bot.begin();
    server.gateway.invalidate(false);
    await server.waitFor(() => server.gateway.counts.connections >= 12);
    const paces = time.waits.filter((ms) => ms === 60_000);
    expect(paces.length).toBeGreaterThan(1);
  });
});

describe('refusals by Discord', () => {
  it.each([4010, 4011, 4012, 4013])(
    'retries slowly after close code %i until it is accepted',
    async (code) => {
      const bot = await aBot();
      const { server, time, intake } = bot;
      server.gateway.closesAtOnceWith = code;
      await bot.begin();
      expect(intake.troubles.at(-1)).toMatchObject({
        kind: 'unreachable',
        detail: expect.stringContaining(`${code}`),
      });
      await server.waitFor(() => server.gateway.counts.connections >= 3);
      const slow = time.waits.filter((ms) => ms >= 60_000);
      expect(slow[0]).toBeGreaterThanOrEqual(60_000);
      expect(slow[1]).toBeGreaterThanOrEqual(300_000);
      server.gateway.clearFaults();
      await hears(bot, intake, 'taken');
      await intake.waitFor(() => intake.troubles.at(-1) === undefined);
    },
  );

  it.each([401, 403, 404, 429, 500])(
    "retries after %i on the request for the gateway's address",
    async (status) => {
      const bot = await aBot();
      const { server, intake } = bot;
      const refused = { kind: 'refuse', status, code: 0, message: 'no' } as const;
      server.fault(refused, { route: 'GET /gateway/bot', times: 3 });
      await bot.begin();
      await hears(bot, intake, 'taken');
      const kind = status === 401 ? 'unauthorised' : 'unreachable';
      expect(intake.troubles.find((trouble) => trouble !== undefined)?.kind ?? kind).toBe(kind);
    },
  );

  it('starts with the first delay if it is refused once after an outage', async () => {
    const bot = await aBot();
    const { server, time, intake } = bot;
    const gatewayUrl = 'GET /gateway/bot';
    const refusals = { kind: 'refuse', code: 0, message: 'no' } as const;
    server.fault({ ...refusals, status: 500 }, { route: gatewayUrl, times: 3 });
    server.fault({ ...refusals, status: 403 }, { route: gatewayUrl });
    await bot.begin();
    await hears(bot, intake, 'taken');
    expect(Math.max(...time.waits.filter((ms) => ms < 300_000))).toBeGreaterThanOrEqual(60_000);
    expect(time.waits.filter((ms) => ms >= 300_000 && ms < 1_000_000)).toEqual([]);
  });

  it('connects again once the token is valid after close code 4004', async () => {
    const bot = await aBot();
    const { server, intake } = bot;
    await bot.begin();
    server.revokeToken();
    await intake.waitFor(() => intake.troubles.some((trouble) => trouble?.kind === 'unauthorised'));
    server.restoreToken();
    await hears(bot, intake, 'valid');
    await intake.waitFor(() => intake.troubles.at(-1) === undefined);
  });

  it('asks for a refused intent again and connects once it is granted', async () => {
    const bot = await aBot({ privileged: { messageContent: false } });
    const { server, ada, general, time, intake } = bot;
    await bot.begin();
    server.grantMessageContent();
    await time.passUntil(60_000, () => server.gateway.counts.identifies === 2);
    await intake.waitFor(() => intake.troubles.at(-1) === undefined);
    server.people.sends({ from: ada, channel: general, text: 'no mention' });
    await intake.waitFor(() => intake.texts.includes('no mention'));
  });
});

describe('a gateway that closes each connection at once', () => {
  it('dials ever more slowly if each connection ends at once', async () => {
    const bot = await aBot();
    const { server, time } = bot;
    server.gateway.closesAtOnceWith = 1011;
    await bot.begin();
    await server.waitFor(() => server.gateway.counts.connections >= 10);
    const pauses = time.waits.filter((ms) =>
      [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000].includes(ms),
    );
    expect(pauses.slice(0, 9)).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  });

  it("identifies less often than Discord's daily limit, however often it gets READY", () => {
    let at = 0;
    const pace = new IdentifyPace({ ...hastyClock, now: () => at });
    const dayMs = 24 * 3_600_000;
    let sessions = 0;
    for (; at < dayMs; sessions += 1) {
      at += Math.max(1, pace.waitMs);
      pace.note();
    }
    expect(sessions).toBeLessThan(1000);
    at += dayMs;
    expect(pace.waitMs).toBe(0);
  });
});

describe('numbers from the gateway', () => {
  it.each([0, -1, 1e300, 'soon', null])(
    'neither floods nor drops the connection with a heartbeat interval of %s',
    async (claim) => {
      const bot = await aBot();
      const { server, intake } = bot;
      server.gateway.heartbeatClaim = claim === null ? {} : claim;
      await bot.begin();
      // With a heartbeat every millisecond, some would go unanswered, and the connection would be abandoned.
      for (let round = 1; round <= 20; round += 1) await hears(bot, intake, `round ${round}`);
      expect(server.gateway.counts).toMatchObject({ connections: 1, identifies: 1 });
    },
  );

  it.each([
    { remaining: 0, reset_after: 1e300 },
    { remaining: -5, reset_after: -1 },
    { remaining: '0', reset_after: 'tomorrow' },
  ])('asks again within 15 minutes if no further session is allowed (%o)', async (session_start_limit) => {
    const bot = await aBot();
    const { server, intake, time } = bot;
    const body = { url: server.platform.gatewayUrl(), shards: 1, session_start_limit };
    server.fault({ kind: 'answer', status: 200, body }, { route: 'GET /gateway/bot', times: 2 });
    await bot.begin();
    expect(intake.troubles.at(-1)).toMatchObject({ detail: expect.stringContaining('no further session') });
    await hears(bot, intake, 'allowed');
    expect(intake.troubles.some((problem) => problem?.nextTryAt !== undefined)).toBe(true);
    const waits = time.waits.filter((ms) => ms >= 60_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(15 * 60_000);
  });

  it("blocks no later call because of a number in a refusal's headers", async () => {
    const { server, dm, route, newAdapter } = await aBot();
    const adapter = newAdapter();
    await adapter.identify(forever);
    for (const value of ['0', '-1', '1e300', 'soon', '3000000']) {
      const headers = {
        ...{ 'retry-after': value, 'x-ratelimit-global': 'true', 'x-ratelimit-limit': value },
        ...{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset-after': value },
        'x-ratelimit-bucket': 'x'.repeat(4000),
      };
      server.fault({ kind: 'answer', status: 429, headers, body: {} }, { route: post });
      const refused = await adapter.send(aText(route(dm.id), value), forever);
      if (refused.kind !== 'retry') throw new Error(`expected a retry, got ${refused.kind}`);
      expect(refused.afterMs).toBeGreaterThanOrEqual(1000);
      expect(refused.afterMs).toBeLessThanOrEqual(30 * 24 * 3_600_000);
      const again = await adapter.send(aText(route(dm.id), value), forever);
      // The wait that the library remembers ends soon; after it, Discord is asked again how long to wait.
      if (again.kind === 'retry') expect(again.afterMs).toBeLessThanOrEqual(longestWaitMs);
      else expect(again.kind).toBe('sent');
      if (value === '3000000') expect(refused.afterMs).toBe(30 * 24 * 3_600_000);
    }
  });
});

describe('invalid frames', () => {
  it("ignores frames that are not Discord's", async () => {
    const bot = await aBot();
    const { server, intake } = bot;
    await bot.begin();
    const frames = [
      ...[
        '',
        'null',
        '7',
        '[]',
        '{',
        '{"op":"x"}',
        '{"op":0}',
        '{"op":0,"t":7,"d":{}}',
        '{"op":0,"t":"READY"}',
      ],
      ...[
        '{"op":0,"t":"READY","s":1e300,"d":{"session_id":""}}',
        '{"op":1,"d":{}}',
        '{"op":10}',
        '{"op":11}',
      ],
      '{"op":10,"d":{"heartbeat_interval":0}}',
      `{"op":0,"t":"MESSAGE_CREATE","s":-1,"d":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
      '{"op":0,"t":"GUILD_CREATE","d":{"__proto__":{"polluted":true},"channels":"all"}}',
    ];
    for (const text of frames) server.gateway.says(text);
    await hears(bot, intake, 'still here');
    expect(server.gateway.counts).toMatchObject({ connections: 1, identifies: 1 });
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    // The session hasn't changed either.
    server.gateway.cut();
    await hears(bot, intake, 'resumed');
    expect(server.gateway.counts).toMatchObject({ resumes: 1, identifies: 1 });
    expect(intake.texts).toEqual(['still here', 'resumed']);
  });

  it('starts another session if the session is called invalid without details', async () => {
    const bot = await aBot();
    const { server, intake } = bot;
    await bot.begin();
    server.gateway.says('{"op":9}');
    await server.waitFor(() => server.gateway.counts.identifies === 2);
    await hears(bot, intake, 'anew');
  });
});

import { mkdir, readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventShape } from '#channel-kit/json-guard.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { InboundBatch } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { nested } from '../../e2e/networks/network.ts';
import { recordingLog, silentLog } from '../../support/silent-log.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { aReceivingStage, isAsked } from './receiving-stage.ts';

const forever = new AbortController().signal;
const spoolIn = async (folder: string) => (await readdir(folder)).filter((name) => name.startsWith('spool'));
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`);

/** An intake that reports the fate of each event, as the gateway does. */
class JudgingIntake extends RecordingIntake {
  readonly #judge: (text: string) => Acceptance | undefined;
  constructor(judge: (text: string) => Acceptance | undefined) {
    super();
    this.#judge = judge;
  }
  override async accept(batch: InboundBatch): Promise<readonly Acceptance[]> {
    const acceptances = await super.accept(batch);
    return acceptances.map((one, index) => {
      const event = batch.events[index]?.event;
      return (event?.kind === 'message' ? this.#judge(event.text) : undefined) ?? one;
    });
  }
}

describe('bursts', () => {
  it('receives 200 messages of one burst in order through the webhook', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    await begin(intake);
    server.inOneWrite(() => {
      for (const text of numbered(200)) server.people.writes({ from: ada, text });
    });
    await intake.waitFor(() => intake.texts.length === 200);
    expect(intake.texts).toEqual(numbered(200));
    await server.waitFor(() => server.posts.every(({ status }) => status === 200));
    expect(server.posts).toHaveLength(200);
  });

  it('keeps a burst in the spool while the store is unavailable, and stores it in order', async () => {
    const { server, ada, begin, dataDir } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    await begin(intake);
    intake.failNext('store_unavailable', 1_000_000);
    server.inOneWrite(() => {
      for (const text of numbered(200)) server.people.writes({ from: ada, text });
    });
    await server.waitFor(
      () => server.posts.length === 200 && server.posts.every(({ status }) => status === 200),
    );
    expect(intake.texts).toEqual([]);
    expect(await spoolIn(dataDir)).not.toEqual([]);
    expect(intake.troubles.at(-1)).toMatchObject({ kind: 'unreachable' });

    intake.recover();
    server.people.writes({ from: ada, text: 'newer' });
    await intake.waitFor(() => intake.texts.length === 201);
    expect(intake.texts).toEqual([...numbered(200), 'newer']);
    await server.waitFor(() => intake.troubles.at(-1) === undefined);
    expect(await spoolIn(dataDir)).toEqual([]);
  });

  it('warns that the WebSocket alone loses most of a burst', async () => {
    const lines: string[] = [];
    const log: Log = { ...silentLog, warn: (_fields, event) => void lines.push(event) };
    const { server, ada, begin } = await aReceivingStage('socket');
    const intake = new RecordingIntake();
    await begin(intake, { log });
    server.inOneWrite(() => {
      for (const text of numbered(50)) server.people.writes({ from: ada, text });
    });
    server.people.writes({ from: ada, text: 'last' });
    await intake.waitFor(() => intake.texts.includes('last'));
    expect(intake.texts.length).toBeLessThan(51);
    expect(lines).toContain('signal.webhook-not-configured');
  });
});

describe('the webhook', () => {
  it('answers the webhook without waiting for calls, so that messages can arrive during a send', async () => {
    const { server, ada, begin, routeTo } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    const adapter = await begin(intake);
    const text = { text: 'hello', spans: [] } as const;
    server.inOneWrite(() => {
      for (const name of numbered(20)) server.people.writes({ from: ada, text: name });
    });
    const results = await Promise.all(
      numbered(10).map((key) =>
        adapter.send({ key: key as never, route: routeTo(ada), content: { kind: 'text', text } }, forever),
      ),
    );
    expect(results.map(({ kind }) => kind)).toEqual(Array(10).fill('sent'));
    await intake.waitFor(() => intake.texts.length === 20);
  });

  it('answers the webhook while the store does not respond, and stores later', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const team = server.world.addGroup({ name: 'Team', members: [ada, server.account] });
    const intake = new RecordingIntake();
    await begin(intake);
    await server.waitFor(() => isAsked(server, '/v1/groups'));
    const release = intake.hold();
    // The group change reaches the blocked store before the message does.
    server.people.changesGroup(ada, team, ({ members }) => void members.pop());
    await intake.waitFor(() => intake.attempts === 1);
    server.people.writes({ from: ada, text: 'slow' });
    await server.waitFor(() => server.posts.length === 2 && server.posts[1]?.status === 200);
    expect(intake.texts).toEqual([]);
    release();
    await intake.waitFor(() => intake.texts.length === 1);
  });

  it('keeps messages while the disk is too full for the store', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    await begin(intake);
    intake.failNext('store_full', 2);
    server.people.writes({ from: ada, text: 'kept' });
    await server.waitFor(() => server.posts[0]?.status === 200);
    await intake.waitFor(() => intake.texts.length === 1);
  });

  it('keeps messages that arrive before it receives, even before the account is known', async () => {
    const { server, ada, newAdapter } = await aReceivingStage('webhook');
    const adapter = newAdapter();
    onTestFinished(() => adapter.stop());
    server.people.writes({ from: ada, text: 'early' });
    await server.waitFor(() => server.posts[0]?.status === 200);
    await adapter.identify(forever);
    server.people.writes({ from: ada, text: 'early too' });
    await server.waitFor(() => server.posts[1]?.status === 200);
    const intake = new RecordingIntake();
    await adapter.start(intake);
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['early', 'early too']);
  });

  it('keeps messages that arrive after another process has taken the account', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    const adapter = await begin(intake);
    intake.failNext('stale_epoch');
    server.people.writes({ from: ada, text: 'whose?' });
    server.people.writes({ from: ada, text: 'mine' });
    await server.waitFor(() => server.posts.filter(({ status }) => status === 200).length === 2);
    expect(intake.attempts).toBe(1);
    await adapter.start(intake);
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['whose?', 'mine']);
  });

  it('keeps messages that reach a standby for the process that receives', async () => {
    const { deliver, begin, newAdapter } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    await begin(intake);
    const standby = newAdapter();
    onTestFinished(() => standby.stop());
    await standby.identify(forever);
    for (const text of numbered(3)) expect(await deliver(text)).toBe(200);
    await intake.waitFor(() => intake.texts.length === 3);
    expect(intake.texts).toEqual(numbered(3));
  });

  it('reports a message as lost while neither store nor disk can take it', async () => {
    const { server, ada, begin, dataDir } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    await begin(intake);
    // A folder in place of the file has the same effect as a broken disk.
    const path = join(dataDir, 'spool.jsonl');
    await mkdir(path);
    intake.failNext('store_unavailable', 1_000_000);
    server.people.writes({ from: ada, text: 'lost' });
    await server.waitFor(() => server.posts[0]?.status === 503);
    expect(intake.gaps).toMatchObject([{ reason: expect.stringContaining('EISDIR') }]);
    const detail = expect.stringMatching(/^messages can neither be stored .*EISDIR/);
    expect(intake.troubles.at(-1)).toMatchObject({ code: 'not-stored', detail });
    await rmdir(path);
    intake.recover();
    // The channel recovers without a new message.
    await intake.waitFor(() => intake.troubles.at(-1) === undefined);
    server.people.writes({ from: ada, text: 'next' });
    await intake.waitFor(() => intake.texts.includes('next'));
  });

  it('reports a lost message once, even if the WebSocket delivered it, too', async () => {
    const { server, ada, begin, dataDir } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    const adapter = await begin(intake);
    await mkdir(join(dataDir, 'spool.jsonl'));
    intake.failNext('store_unavailable', 1_000_000);
    for (const text of ['lost', 'lost as well']) server.people.writes({ from: ada, text });
    await server.waitFor(() => server.posts.filter(({ status }) => status === 503).length === 2);
    // Everything that the socket has brought is handled before a stop completes.
    await adapter.stop();
    expect(intake.gaps).toHaveLength(2);
  });

  it('reports a message as lost that is larger than the webhook accepts, and doctor warns later', async () => {
    const { post, begin, newAdapter } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    const adapter = await begin(intake);
    const large = 'x'.repeat(1_100_000);
    expect(await post(large, 'a-secret-of-22-characters-or-mor')).toBe(403);
    expect(intake.gaps).toEqual([]);
    expect(await post(large)).toBe(413);
    expect(intake.gaps).toMatchObject([{ code: 'lost', reason: expect.stringContaining('more than 1 MB') }]);
    await adapter.stop();
    const checks = await newAdapter().checks.check(forever);
    expect(checks.find(({ name }) => name === 'losses')).toMatchObject({ result: 'warning' });
  });

  it("keeps earlier processes' notes when it notes a loss before receiving", async () => {
    const { post, begin, newAdapter } = await aReceivingStage('webhook');
    await (await begin(new RecordingIntake())).stop();
    const waiting = newAdapter();
    expect(await post('x'.repeat(1_100_000))).toBe(413);
    const losses = async () => (await waiting.checks.check(forever)).map(({ name }) => name);
    await expect.poll(losses).toContain('losses');
    const intake = new RecordingIntake();
    await begin(intake);
    expect(intake.gaps).toMatchObject([{ code: 'not-kept', since: expect.any(Number) }]);
  });

  it('accepts anything with the right secret and tells nothing to anybody else', async () => {
    const { server, post, begin } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    await begin(intake);
    for (const secret of ['', 'x', 'a-secret-of-22-characters-or-mor', 'a-secret-of-22-characters-or-more/x'])
      expect(await post('{}', secret)).toBe(403);
    expect(await post('no json at all')).toBe(200);
    expect(await post('{"jsonrpc":"2.0","method":"receive","params":{"account":7}}')).toBe(200);
    await intake.waitFor(() => intake.unreadable.length === 2);
    const others = JSON.stringify({ params: { account: '+15550000002' }, method: 'receive' });
    expect(await post(others)).toBe(200);
    expect(intake.attempts).toBe(2);
    expect(server.calls.length).toBeGreaterThan(0);
  });
});

describe('the WebSocket beside the webhook', () => {
  it('stores nothing again that the webhook has delivered', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    const adapter = await begin(intake);
    await server.waitFor(() => server.openSockets === 1);
    for (const text of numbered(5)) server.people.writes({ from: ada, text });
    await intake.waitFor(() => intake.texts.length === 5);
    await adapter.stop();
    expect(intake.attempts).toBe(5);
  });

  it('receives by WebSocket what the webhook does not deliver', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    await begin(intake);
    await server.waitFor(() => server.openSockets === 1);
    server.webhookUrl = undefined;
    server.people.writes({ from: ada, text: 'by socket' });
    await intake.waitFor(() => intake.texts.length === 1);
  });

  it('stores an unreadable message once, although both deliver it', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    const wait: Clock['wait'] = (ms, signal) => systemClock.wait(Math.min(ms, 50), signal);
    await begin(intake, { clock: { now: systemClock.now, wait } });
    await server.waitFor(() => server.openSockets === 1);
    const mentions = Array.from({ length: eventShape.values }, () => ({}));
    for (const dataMessage of [nested(800), { mentions }])
      server.emit({ account: server.number, envelope: { sourceUuid: ada.uuid, dataMessage } });
    await intake.waitFor(() => intake.unreadable.length === 2);
    server.webhookUrl = undefined;
    // The socket delivers this after its copy of the previous message.
    server.people.writes({ from: ada, text: 'by socket' });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.unreadable).toHaveLength(2);
  });
});

describe('the WebSocket alone', () => {
  it('gives up a dead WebSocket, opens another and reports the gap', async () => {
    const { server, ada, begin } = await aReceivingStage('socket');
    const intake = new RecordingIntake();
    const clock: Clock = {
      now: systemClock.now,
      wait: (ms, signal) => systemClock.wait(Math.min(ms, 50), signal),
    };
    await begin(intake, { clock, config: { heartbeatMs: 200 } });
    server.people.writes({ from: ada, text: 'heard' });
    await intake.waitFor(() => intake.texts.length === 1);
    const before = Date.now();
    server.freezeSockets();
    server.people.writes({ from: ada, text: 'unheard' });
    const gap = await intake.waitFor(() => intake.gaps[0]);
    expect(gap.since).toBeLessThanOrEqual(Date.now());
    expect(gap.since).toBeGreaterThan(before - 1000);
    server.people.writes({ from: ada, text: 'heard again' });
    await intake.waitFor(() => intake.texts.includes('heard again'));
    expect(intake.texts).toEqual(['heard', 'heard again']);
  });

  it('reports when the server goes away and when it is back', async () => {
    const { server, ada, begin } = await aReceivingStage('socket');
    const intake = new RecordingIntake();
    await begin(intake);
    await server.goAway();
    await intake.waitFor(() => intake.troubles.at(-1)?.kind === 'unreachable');
    await server.comeBack();
    await intake.waitFor(() => intake.troubles.at(-1) === undefined);
    await server.waitFor(() => server.openSockets === 1);
    server.people.writes({ from: ada, text: 'back' });
    await intake.waitFor(() => intake.texts.length === 1);
  });

  it('does not take an error frame for a message', async () => {
    const { server, ada, begin } = await aReceivingStage('socket');
    const intake = new RecordingIntake();
    await begin(intake);
    server.sendErrorFrame('untrusted identity');
    server.people.writes({ from: ada, text: 'next' });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.unreadable).toEqual([]);
  });

  it('keeps messages from the WebSocket in the spool while the store is unavailable', async () => {
    const { server, ada, begin } = await aReceivingStage('socket');
    const intake = new RecordingIntake();
    const adapter = await begin(intake);
    intake.failNext('store_unavailable', 1_000_000);
    server.people.writes({ from: ada, text: 'kept' });
    await intake.waitFor(() => intake.attempts > 0);
    await adapter.stop();
    const restarted = intake.restarted();
    await begin(restarted);
    await restarted.waitFor(() => restarted.texts.length === 1);
  });
});

describe('messages missed while Parley is down', () => {
  it('reports a gap since it last ran after each start in json-rpc mode', async () => {
    const { begin } = await aReceivingStage('webhook');
    const first = new RecordingIntake();
    const adapter = await begin(first);
    expect(first.gaps).toEqual([]);
    const stoppedAt = Date.now();
    await adapter.stop();
    await adapter.start(first);
    // In the meantime the webhook kept storing what came.
    expect(first.gaps).toEqual([]);
    await adapter.stop();
    const second = new RecordingIntake();
    await begin(second);
    expect(second.gaps).toMatchObject([{ reason: expect.stringContaining('keeps nothing') }]);
    expect(second.gaps[0]?.since).toBeGreaterThanOrEqual(stoppedAt);
  });

  it('fetches messages that waited on the server in the modes that poll', async () => {
    const { server, ada, begin } = await aReceivingStage('polling');
    const first = new RecordingIntake();
    const adapter = await begin(first);
    server.people.writes({ from: ada, text: 'before' });
    await first.waitFor(() => first.texts.length === 1);
    await adapter.stop();
    server.people.writes({ from: ada, text: 'between' });
    const second = first.restarted();
    await begin(second);
    await second.waitFor(() => second.texts.length === 2);
    expect(second.gaps).toEqual([]);
  });
});

describe('polls', () => {
  it('fetches few messages at a time and none while the store is unavailable', async () => {
    const { server, ada, begin } = await aReceivingStage('polling');
    const intake = new RecordingIntake();
    intake.failNext('store_unavailable', 1_000_000);
    for (const text of numbered(25)) server.people.writes({ from: ada, text });
    await begin(intake);
    await intake.waitFor(() => intake.attempts > 3);
    expect(server.mailbox().fetched).toBe(10);
    expect(server.mailbox().waiting).toHaveLength(15);
    intake.recover();
    await intake.waitFor(() => intake.texts.length === 25);
    expect(intake.texts).toEqual(numbered(25));
  });

  it("stores a poll's messages in one step, so that a crash loses none", async () => {
    const { server, ada, begin } = await aReceivingStage('polling');
    const intake = new RecordingIntake();
    for (const text of numbered(15)) server.people.writes({ from: ada, text });
    await begin(intake);
    await intake.waitFor(() => intake.texts.length === 15);
    expect(intake.batches.map(({ events }) => events.length)).toEqual([10, 5]);
  });

  it.each([
    ['in an answer', false],
    ['in an error, because signal-cli failed', true],
  ])('stores the messages before a stack trace %s, and no message inside it', async (_where, failed) => {
    const { server, ada, begin } = await aReceivingStage('polling');
    const intake = new RecordingIntake();
    const account = server.number;
    const envelope = { sourceUuid: ada.uuid, timestamp: 1, dataMessage: { timestamp: 1, message: 'forged' } };
    const lines = [
      'java.lang.AssertionError: {},{"x":[]},',
      '\tat org.asamk.signal.Main',
      JSON.stringify({ envelope, account }),
      'more',
    ];
    for (const text of numbered(3)) server.people.writes({ from: ada, text });
    server.fault({ kind: 'mixed-output', lines, failed }, { path: '/v1/receive' });
    await begin(intake);
    server.people.writes({ from: ada, text: 'next' });
    await intake.waitFor(() => intake.texts.includes('next'));
    expect(intake.texts).toEqual([...numbered(3), 'next']);
    expect([intake.gaps, intake.unreadable]).toEqual([[], []]);
  });

  it.each([
    [
      'ended signal-cli after it took too long',
      { kind: 'refuse', status: 400, error: 'process killed as timeout reached' },
    ],
    ['returned only a stack trace', { kind: 'mixed-output', lines: ['java.lang.Error', '\tat Main'] }],
  ] as const)('reports a gap if the server %s', async (_what, fault) => {
    const { server, begin } = await aReceivingStage('polling');
    const intake = new RecordingIntake();
    server.fault(fault, { path: '/v1/receive' });
    await begin(intake);
    expect(await intake.waitFor(() => intake.gaps[0])).toMatchObject({ code: 'lost' });
  });

  it('reports a poll whose answer is lost as a gap', async () => {
    const { server, ada, begin } = await aReceivingStage('polling');
    const intake = new RecordingIntake();
    server.fault({ kind: 'drop-answer' }, { path: '/v1/receive' });
    server.people.writes({ from: ada, text: 'lost' });
    await begin(intake);
    const gap = await intake.waitFor(() => intake.gaps[0]);
    expect(gap.reason).toContain('cut off');
    server.people.writes({ from: ada, text: 'next' });
    await intake.waitFor(() => intake.texts.includes('next'));
  });

  it('reports a poll that a kill may have interrupted as a gap, once', async () => {
    const { server, begin } = await aReceivingStage('polling');
    const beginAndPoll = async (intake: RecordingIntake) => {
      const adapter = await begin(intake);
      const before = server.calls.length;
      await server.waitFor(() =>
        server.calls.slice(before).some(({ path }) => path.startsWith('/v1/receive')),
      );
      return adapter;
    };
    // It isn't stopped before the next one starts, as after a kill.
    await beginAndPoll(new RecordingIntake());
    const second = new RecordingIntake();
    second.heldUntil = 1234;
    const adapter = await beginAndPoll(second);
    await second.waitFor(() => second.gaps.length > 0);
    expect(second.gaps).toMatchObject([{ code: 'cut-off', since: 1234 }]);
    await adapter.stop();
    const third = new RecordingIntake();
    const last = await beginAndPoll(third);
    await last.stop();
    expect(third.gaps).toEqual([]);
  });

  it('waits for the running poll when receiving stops, so that no message is lost', async () => {
    const { server, ada, begin } = await aReceivingStage('polling');
    const intake = new RecordingIntake();
    const adapter = await begin(intake);
    await server.waitFor(() => server.calls.some(({ path }) => path.startsWith('/v1/receive')));
    const stopping = adapter.stop();
    server.people.writes({ from: ada, text: 'just in time' });
    await stopping;
    expect(intake.texts.length + server.mailbox().waiting.length).toBe(1);
  });
});

describe('accepted messages', () => {
  it('sends a read receipt, unless the message was refused or receipts are off', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const intake = new JudgingIntake((text) =>
      text === 'no' ? { kind: 'refused', reason: 'dm-not-allowed' } : undefined,
    );
    const adapter = await begin(intake);
    const refused = server.people.writes({ from: ada, text: 'no' });
    const taken = server.people.writes({ from: ada, text: 'yes' });
    await server.waitFor(() => taken.readBy.has(server.account.uuid));
    expect(refused.readBy.size).toBe(0);
    await adapter.stop();

    await begin(intake, { config: { readReceipts: false } });
    const quiet = server.people.writes({ from: ada, text: 'quiet' });
    await intake.waitFor(() => intake.texts.includes('quiet'));
    expect(server.calls.filter(({ path }) => path.startsWith('/v1/receipts'))).toHaveLength(1);
    expect(quiet.readBy.size).toBe(0);
    expect(server.refusals).toEqual([]);
  });

  it('removes files from the server unless they are fetched now or later', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const became: Record<string, Acceptance> = {
      kept: { kind: 'refused', reason: 'dm-not-paired', keepsFiles: true },
      held: { kind: 'held' },
      'not paired': { kind: 'refused', reason: 'dm-not-paired' },
      'not mentioned': { kind: 'ignored', reason: 'not-mentioned' },
      remembered: { kind: 'ignored', reason: 'not-mentioned', keepsFiles: true },
      'seen once': { kind: 'ignored', reason: 'not-mentioned', keepsFiles: true },
      '/stop': { kind: 'command', command: 'stop' },
    };
    const adapter = await begin(new JudgingIntake((text) => became[text]));
    const files = ['taken', ...Object.keys(became)].map((text) => {
      const file = server.world.addAttachment({ bytes: Buffer.from('x') });
      const fields = { viewOnce: text === 'seen once' };
      server.people.writes({ from: ada, text, attachments: [file], fields });
      return { text, isThere: () => server.world.attachments.has(file.id) };
    });
    // They are removed one after another, in this order.
    await server.waitFor(() => files.at(-1)?.isThere() === false);
    await adapter.stop();
    expect(files.filter(({ isThere }) => isThere()).map(({ text }) => text)).toEqual([
      'taken',
      'kept',
      'held',
      'remembered',
    ]);
  });
});

describe('logs', () => {
  it('logs neither the secret nor any text', async () => {
    const { log, lines } = recordingLog();
    const { server, ada, begin, dataDir } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    const adapter = await begin(intake, { log });
    intake.failNext('store_unavailable', 3);
    server.people.writes({ from: ada, text: 'the private text' });
    server.people.sendsUnreadable(ada);
    await intake.waitFor(() => intake.texts.length === 1 && intake.unreadable.length === 1);
    await adapter.stop();
    expect(lines.length).toBeGreaterThan(3);
    expect(lines.join('\n')).not.toContain('private text');
    expect(lines.join('\n')).not.toContain('a-secret-of-22');
    expect(await readFile(join(dataDir, 'last-seen.json'), 'utf8')).toMatch(/^\{"(aliveAt|webhookAt)":/);
  });
});

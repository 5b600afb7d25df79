import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttachmentRef } from '#contracts/attachment.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { messageId, partKey } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { SignalAdapter } from '../../../channels/signal/adapter.ts';
import { signalConfig } from '../../../channels/signal/config.ts';
import { againstSwagger } from '../../platforms/signal/fairness.ts';
import type { Group, Person } from '../../platforms/signal/types.ts';
import { aFolder } from '../../support/own-folder.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { aSignalStage, type SignalStage, spansOf, webhookSecret } from './signal-setup.ts';

const forever = new AbortController().signal;
let stage: SignalStage;
let server: SignalStage['server'];
let adapter: SignalAdapter;
let ada: Person;
let team: Group;
let dm: ReplyRoute;
/** The refusals that a test expects. */
let wanted: string[] = [];

const text = (value: string): OutboundContent => ({ kind: 'text', text: plainText(value) });
const send = (content: OutboundContent, route: ReplyRoute = dm) =>
  adapter.send({ key: partKey('r:1:t'), route, content }, forever);
const receiptOf = async (content: OutboundContent, route?: ReplyRoute) => {
  const result = await send(content, route);
  expect(result.kind).toBe('sent');
  const [receipt] = result.kind === 'sent' ? result.receipts : [];
  if (receipt === undefined) throw new Error('the send left no receipt');
  return receipt;
};
const onSend = { path: '/v2/send' };

async function begin(options: Parameters<typeof aSignalStage>[1] = {}): Promise<void> {
  stage = await aSignalStage('webhook', options);
  ({ server, ada } = stage);
  team = server.world.addGroup({ name: 'Team', members: [ada, server.account] });
  dm = stage.routeTo(ada);
  adapter = stage.newAdapter();
  await adapter.identify(forever);
}

afterEach(async () => {
  // Nothing that was sent may be wrong, or mean something other than intended.
  expect(server.refusals.map(({ why }) => why)).toEqual(wanted.splice(0));
  expect(againstSwagger(server)).toEqual([]);
  await adapter.stop();
  await stage.close();
});

describe.each(['0.100', 'head'] as const)('sending to release %s', (release) => {
  beforeEach(() => begin({ release }));

  it('sends a text to a direct conversation and to a group', async () => {
    const receipts = [await receiptOf(text('to you')), await receiptOf(text('to all'), stage.routeTo(team))];
    const standing = [...server.botMessages(ada), ...server.botMessages(team)];
    expect(standing.map((one) => one.text)).toEqual(['to you', 'to all']);
    expect(receipts).toEqual(standing.map(({ timestamp }) => `${server.account.uuid}:${timestamp}`));
  });

  it('sends styles and literal markers side by side', async () => {
    const value = '**2** * 3 = six, ~/home and ||';
    const spans = [
      { kind: 'bold', start: 12, length: 3 },
      { kind: 'code', start: 17, length: 6 },
    ] as const;
    await receiptOf({ kind: 'text', text: { text: value, spans } });
    const [shown] = server.botMessages(ada);
    expect([shown?.text, spansOf(shown?.styles ?? [])]).toEqual([value, spans]);
  });

  it('quotes, edits, deletes and reacts', async () => {
    const intake = new RecordingIntake();
    await adapter.start(intake);
    const asked = server.people.writes({ from: ada, to: team, text: 'what is it?' });
    await server.waitFor(() => server.posts[0]?.status === 200);
    const question = await intake.waitFor(() => intake.events[0]?.route);
    const receipt = await receiptOf(text('first'), question);
    const [answer] = server.botMessages(team);
    expect(answer?.quote).toEqual({ timestamp: asked.timestamp, authorUuid: ada.uuid, text: 'what is it?' });
    for (const again of ['second', 'third'])
      expect(await send({ kind: 'edit', messageId: receipt, text: plainText(again) }, question)).toEqual({
        kind: 'sent',
        receipts: [receipt],
      });
    expect(answer?.text).toBe('third');
    const emoji = messageId(`${ada.uuid}:${asked.timestamp}`);
    expect((await send({ kind: 'reaction', messageId: emoji, emoji: '⚠️' }, question)).kind).toBe('sent');
    expect(asked.reactions.get(server.account.uuid)).toBe('⚠️');
    expect((await send({ kind: 'reaction', messageId: emoji, emoji: '' }, question)).kind).toBe('sent');
    expect(asked.reactions.size).toBe(0);
    expect((await send({ kind: 'delete', messageId: receipt }, question)).kind).toBe('sent');
    expect(server.botMessages(team)).toEqual([]);
  });

  it('answers a note to self', async () => {
    await receiptOf(text('noted'), stage.routeTo(server.account));
    expect(server.botMessages(server.account).map((one) => one.text)).toEqual(['noted']);
  });

  it('counts a group message that missed one member as sent', async () => {
    const bob = server.world.addPerson({ name: 'Bob' });
    team.members.push(bob);
    server.fault({ kind: 'partial', failed: { [bob.uuid]: 'NETWORK_FAILURE' } }, onSend);
    await receiptOf(text('to most'), stage.routeTo(team));
  });
});

describe('failed sends', () => {
  beforeEach(() => begin());

  it('reports which captcha to solve after a challenge, and recovers with the next success', async () => {
    const intake = new RecordingIntake();
    await adapter.start(intake);
    server.fault({ kind: 'rate-limit', tokens: ['token-1'] }, onSend);
    expect(await send(text('x'))).toMatchObject({ kind: 'retry', afterMs: expect.any(Number) });
    const problem = intake.troubles.at(-1);
    expect(problem?.detail).toContain(`/v1/accounts/${server.number}/rate-limit-challenge`);
    expect(problem).toMatchObject({ kind: 'challenge', detail: expect.stringContaining('token-1') });
    await receiptOf(text('x'));
    expect(intake.troubles.at(-1)).toBeUndefined();
  });

  it('reports a rate-limited send without a challenge as unknown, because it may have arrived', async () => {
    server.fault({ kind: 'rate-limit', tokens: [''], isDelivered: true }, onSend);
    expect((await send(text('x'))).kind).toBe('unknown');
    expect(server.botMessages(ada)).toHaveLength(1);
  });

  it('reports a send without an answer as unknown, and repeats a change', async () => {
    adapter = stage.newAdapter({ config: { callTimeoutMs: 1000 } });
    await adapter.identify(forever);
    server.fault({ kind: 'hang', isApplied: true }, onSend);
    expect((await send(text('once'))).kind).toBe('unknown');
    const [standing] = server.botMessages(ada);
    const id = messageId(`${server.account.uuid}:${standing?.timestamp}`);
    server.fault({ kind: 'hang' }, onSend);
    expect((await send({ kind: 'edit', messageId: id, text: plainText('y') })).kind).toBe('retry');
    expect(server.botMessages(ada).map((one) => one.text)).toEqual(['once']);
  });

  it('reports a send that a proxy answered as unknown', async () => {
    server.fault({ kind: 'page', status: 502 }, onSend);
    expect((await send(text('x'))).kind).toBe('unknown');
  });

  it('keeps retrying while signal-cli is down', async () => {
    server.fault(
      { kind: 'refuse', status: 400, error: 'write tcp 127.0.0.1:6001: use of closed network connection' },
      onSend,
    );
    expect(await send(text('x'))).toMatchObject({ kind: 'retry', isOutage: true });
  });
});

describe('outgoing files', () => {
  let folder: string;
  beforeEach(async () => {
    await begin();
    folder = aFolder();
  });

  it.each([1, 70_001, 2_000_000])(
    'sends a file of %i bytes byte for byte, with name and caption',
    async (size) => {
      const bytes = Buffer.from(Array.from({ length: size }, (_, index) => (index * 7) % 251));
      const path = join(folder, 'a.bin');
      await writeFile(path, bytes);
      const caption = { text: 'look *here*', spans: [{ kind: 'bold', start: 0, length: 4 }] } as const;
      const name = 'ö "x"; .pdf';
      await receiptOf({ kind: 'media', path, mimeType: 'application/pdf', name, caption });
      const [shown] = server.botMessages(ada);
      const [file] = shown?.attachments ?? [];
      expect([shown?.text, file?.contentType, file?.fileName]).toEqual([
        'look *here*',
        'application/pdf',
        'ö _x__ .pdf',
      ]);
      expect(Buffer.from(file?.bytes ?? []).equals(bytes)).toBe(true);
    },
  );

  it('sends several files in one message', async () => {
    const files = ['a.png', 'b.pdf', 'c.ogg'].map((name) => ({
      ...{ path: join(folder, name), name, mimeType: 'image/png' },
    }));
    for (const { path, name } of files) await writeFile(path, Buffer.alloc(70_001, name));
    await receiptOf({ kind: 'media', files, caption: plainText('all three'), asVoice: true });
    const [shown, ...more] = server.botMessages(ada);
    expect([shown?.text, more]).toEqual(['all three', []]);
    expect(shown?.attachments.map(({ fileName }) => fileName)).toEqual(['a.png', 'b.pdf', 'c.ogg']);
    expect(Buffer.from(shown?.attachments[1]?.bytes ?? []).equals(Buffer.alloc(70_001, 'b.pdf'))).toBe(true);
  });

  it('refuses files that are missing or empty without a call', async () => {
    const empty = join(folder, 'empty');
    await writeFile(empty, '');
    for (const path of [join(folder, 'none'), empty, folder]) {
      const result = await send({ kind: 'media', path, mimeType: 'image/png', name: 'x' });
      expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
    }
    expect(server.sent).toEqual([]);
  });
});

describe('incoming files', () => {
  beforeEach(() => begin());
  const drain = async (ref: AttachmentRef, maxBytes: number) => {
    let size = 0;
    for await (const chunk of adapter.media.fetch(ref, maxBytes, forever)) size += chunk.length;
    return size;
  };
  const refOf = (id: string): AttachmentRef => ({ ref: id, kind: 'file' });

  it('streams a file as it is and keeps it on the server until it is released', async () => {
    const file = server.world.addAttachment({ bytes: Buffer.alloc(300_000, 7), fileName: 'a b.bin' });
    expect(await drain(refOf(file.id), 300_000)).toBe(300_000);
    expect(server.world.attachments.has(file.id)).toBe(true);
    await adapter.media.release?.(refOf(file.id), forever);
    expect(server.world.attachments.has(file.id)).toBe(false);
  });

  it('does not fetch a file beyond the limit, whether or not its size is stated', async () => {
    const file = server.world.addAttachment({ bytes: Buffer.alloc(5000) });
    await expect(drain({ ...refOf(file.id), sizeBytes: 1e9 }, 4999)).rejects.toMatchObject({
      code: 'media_too_large',
    });
    await expect(drain(refOf(file.id), 4999)).rejects.toMatchObject({ code: 'media_too_large' });
  });

  it('reports a missing file as unavailable', async () => {
    await expect(drain({ ref: '../../etc/passwd', kind: 'file' }, 100)).rejects.toMatchObject({
      code: 'media_unavailable',
    });
    wanted = ['No attachment with that name found'];
  });
});

describe('typing', () => {
  it('shows typing in direct and group conversations and refreshes it before it expires', async () => {
    await begin();
    await adapter.typing.show(dm, forever);
    await adapter.typing.show(stage.routeTo(team), forever);
    expect(server.platform.typing.map(({ isOn }) => isOn)).toEqual([true, true]);
    expect(adapter.typing.refreshMs).toBeLessThan(15_000);
    await server.goAway();
    await expect(adapter.typing.show(dm, forever)).resolves.toBeUndefined();
  });
});

describe('identify', () => {
  it('finds the only account by itself, and has to be told which of several to use', async () => {
    await begin();
    expect(await adapter.identify(forever)).toEqual({ id: server.account.uuid, name: server.number });
    const second = server.world.addAccount({ number: '+15550000002' });
    await expect(adapter.identify(forever)).rejects.toMatchObject({ code: 'channel_unauthorised' });
    const chosen = stage.newAdapter({ config: { number: second.number } });
    expect((await chosen.identify(forever)).id).toBe(second.uuid);
  });

  it('reports an unreachable or invalid server as unavailable for now', async () => {
    await begin();
    for (const fault of [{ kind: 'page', status: 502 }, { kind: 'cut' }] as const) {
      server.fault(fault, { path: '/v1/about' });
      await expect(adapter.identify(forever)).rejects.toMatchObject({
        code: 'channel_unavailable',
        retry: { kind: 'later' },
      });
    }
    await server.goAway();
    await expect(adapter.identify(forever)).rejects.toMatchObject({ code: 'channel_unavailable' });
  });

  it('asks again if the server never answers', async () => {
    await begin();
    adapter = stage.newAdapter({ config: { callTimeoutMs: 1000 } });
    server.fault({ kind: 'hang' }, { path: '/v1/accounts', times: 2 });
    expect((await adapter.identify(forever)).id).toBe(server.account.uuid);
  });
});

describe('linking', () => {
  it('shows a link code until it is scanned and then names the account', async () => {
    stage = await aSignalStage('webhook', { isUnlinked: true });
    ({ server } = stage);
    adapter = stage.newAdapter();
    const steps: unknown[] = [];
    for await (const step of adapter.login.login(forever)) {
      steps.push(step);
      if (step.kind === 'scan') server.finishLink({ number: '+15550000077' });
    }
    expect(steps).toEqual([
      { kind: 'scan', uri: expect.stringMatching(/^sgnl:\/\/linkdevice\?uuid=/) },
      { kind: 'done', account: '+15550000077' },
    ]);
    expect(server.platform.links[0]?.deviceName).toBe('Parley');
  });

  it('links nothing if the account exists, and stops when aborted', async () => {
    await begin();
    adapter = stage.newAdapter({ config: { number: server.number } });
    const linked = [];
    for await (const step of adapter.login.login(forever)) linked.push(step);
    expect(linked).toEqual([{ kind: 'done', account: server.number }]);
    adapter = stage.newAdapter({ config: { number: '+15550009999' } });
    const giveUp = new AbortController();
    const waiting = (async () => {
      for await (const step of adapter.login.login(giveUp.signal)) if (step.kind === 'scan') giveUp.abort();
    })();
    await expect(waiting).rejects.toMatchObject({ code: 'channel_unavailable' });
  });
});

describe('checks', () => {
  const results = async (one: SignalAdapter) =>
    Object.fromEntries((await one.checks.check(forever)).map(({ name, result }) => [name, result]));

  it('passes all checks if everything is right', async () => {
    await begin();
    await adapter.start(new RecordingIntake());
    expect((await results(adapter)).webhook).toBe('warning');
    server.people.writes({ from: ada, text: 'hi' });
    await server.waitFor(() => server.posts[0]?.status === 200);
    expect(await results(adapter)).toEqual({ server: 'ok', webhook: 'ok', account: 'ok', profile: 'ok' });
    await adapter.stop();
    // The next process knows it too.
    expect((await results(stage.newAdapter())).webhook).toBe('ok');
  });

  it('says in its checks what is wrong and how to fix it', async () => {
    await begin();
    const checks = await stage.newAdapter({ config: { webhookSecret: undefined } }).checks.check(forever);
    expect(checks.find(({ name }) => name === 'webhook')).toMatchObject({
      result: 'warning',
      fix: expect.stringContaining('RECEIVE_WEBHOOK_URL'),
    });
    server.world.renameAccount(server.account, '');
    expect((await results(adapter)).profile).toBe('failed');
    expect((await results(stage.newAdapter({ config: { number: '+15550009999' } }))).account).toBe('failed');
    await server.goAway();
    expect(await results(adapter)).toEqual({ server: 'failed' });
  });
});

describe('configuration', () => {
  const apiUrl = 'http://127.0.0.1:8080/';
  it('accepts the secret as text or wrapped, and the address with or without a slash', () => {
    expect(signalConfig.parse({ apiUrl, webhookSecret: { reveal: () => webhookSecret } })).toMatchObject({
      apiUrl: 'http://127.0.0.1:8080',
      webhookSecret,
    });
  });

  it.each([
    { apiUrl: 'ftp://x' },
    { apiUrl, number: '0170123456' },
    { apiUrl, webhookSecret: 'short' },
    { apiUrl, webhookSecret: 'with/a/slash/that/would/end/the/path' },
  ])('refuses the configuration %j', (config) => {
    expect(signalConfig.safeParse(config).success).toBe(false);
  });
});

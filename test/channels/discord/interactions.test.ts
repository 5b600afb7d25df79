import { describe, expect, it } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { InboundBatch } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { messageId } from '#contracts/ids.ts';
import { tokenLifetimeMs } from '../../../channels/discord/interaction-tokens.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { aDiscordStage, aText, forever } from './discord-stage.ts';

const commands = [
  { name: 'queue', description: 'How messages wait', argument: 'the mode' },
  { name: 'stop', description: 'Ends the run' },
];
const callback = 'POST /interactions/:interaction/:token/callback';
/** Pauses take their full length, so "thinking…" stays visible for a while. */
const patient = { clock: systemClock };

class Refusing extends RecordingIntake {
  override async accept(batch: InboundBatch): Promise<readonly Acceptance[]> {
    await super.accept(batch);
    return batch.events.map(() => ({ kind: 'refused', reason: 'dm-disabled' }));
  }
}

class Late extends RecordingIntake {
  override async accept(batch: InboundBatch): Promise<readonly Acceptance[]> {
    await super.accept(batch);
    return batch.events.map(() => ({ kind: 'pressed', result: 'late', text: 'Already approved.' }));
  }
}

/** Starts a bot that has registered its commands. */
async function aCommandedStage(intake = new RecordingIntake(), { clock } = patient) {
  let at = Date.now();
  const stage = await aDiscordStage({ now: () => at });
  const { adapter } = await stage.begin(intake, { clock });
  await adapter.commands.register(commands, forever);
  const pass = (ms: number) => {
    at += ms;
  };
  return { ...stage, adapter, intake, pass };
}

describe('slash commands', () => {
  it("acknowledges a slash command before it is stored and answers in the acknowledgement's place", async () => {
    const { server, ada, dm, adapter, intake, route } = await aCommandedStage();
    const release = intake.hold();
    const used = server.people.uses({ from: ada, name: 'queue', options: { text: 'followup' } });
    await server.waitFor(() => used.answer === 5);
    expect(intake.events).toEqual([]);
    release();
    const envelope = await intake.waitFor(() => intake.events[0]);
    expect(envelope).toMatchObject({
      sender: { id: ada.id },
      chat: { kind: 'dm' },
      event: { kind: 'message', text: '/queue followup', mentionsBot: true },
    });
    const outbound = aText(envelope.route, 'It is so.');
    expect(await adapter.send(outbound, forever)).toMatchObject({ kind: 'sent' });
    expect(await adapter.send(outbound, forever)).toMatchObject({ kind: 'sent' });
    expect(server.answersTo(used).map(({ text }) => text)).toEqual(['It is so.']);
    // A second part is a separate message, even if it has the same text.
    await adapter.send(aText(envelope.route, 'It is so.', 'run-1:2'), forever);
    await adapter.send(aText(route(dm.id), 'Later.'), forever);
    expect(server.texts(dm.id)).toEqual(['parley: It is so.', 'parley: It is so.', 'parley: Later.']);
    expect(server.refusals).toEqual([]);
  });

  it('acknowledges a slash command that arrives twice once', async () => {
    const { server, ada, intake } = await aCommandedStage();
    server.gateway.fault({ kind: 'duplicate', event: 'INTERACTION_CREATE' });
    server.people.uses({ from: ada, name: 'stop' });
    server.people.sends({ from: ada, text: 'behind it' });
    await intake.waitFor(() => intake.texts.includes('behind it'));
    expect(intake.texts).toEqual(['/stop', 'behind it']);
    expect(server.calls.filter(({ route }) => route === callback)).toHaveLength(1);
  });

  it('removes the acknowledgement of a slash command that is not accepted', async () => {
    const { server, ada, general } = await aCommandedStage(new Refusing());
    const used = server.people.uses({ from: ada, name: 'stop', channel: general });
    await server.waitFor(() => server.deletedMessages(general.id).length === 1);
    expect(server.answersTo(used)).toEqual([]);
    expect(server.texts(general.id)).toEqual([]);
  });

  it('sends the refusal as a message while the acknowledgement is being removed', async () => {
    const { server, ada, dm, adapter, intake } = await aCommandedStage(new Refusing());
    server.fault(
      { kind: 'hang', isApplied: false },
      { route: 'DELETE /webhooks/:application/:token/messages/:message' },
    );
    const used = server.people.uses({ from: ada, name: 'stop' });
    const envelope = await intake.waitFor(() => intake.events[0]);
    await server.waitFor(() => server.calls.some(({ method }) => method === 'DELETE'));
    const notice = aText(envelope.route, 'You may not.');
    expect(await adapter.send(notice, forever)).toMatchObject({ kind: 'sent' });
    expect(server.answersTo(used).map(({ text }) => text)).toEqual(['']);
    expect(server.texts(dm.id).at(-1)).toBe('parley: You may not.');
  });

  it('answers a slash command once after a crash, even late or without access to the history', async () => {
    const { server, ada, general, intake, newAdapter } = await aCommandedStage();
    const used = server.people.uses({ from: ada, name: 'stop', channel: general });
    const { route } = await intake.waitFor(() => intake.events[0]);
    await server.waitFor(() => used.answer === 5);
    const answers = async (clock: Clock) => {
      const next = newAdapter({ clock });
      await next.identify(forever);
      expect(await next.send(aText(route, 'Stopped.'), forever)).toMatchObject({ kind: 'sent' });
    };
    server.places.denies(general, 'readMessageHistory');
    await answers(systemClock);
    // Neither of these two knows whether the previous process's answer arrived.
    await answers(systemClock);
    server.places.denies(general);
    await answers({ ...systemClock, now: () => Date.now() + tokenLifetimeMs });
    expect(server.texts(general.id)).toEqual(['parley: Stopped.']);
    expect(server.answersTo(used)).toHaveLength(1);
  });

  it('keeps the answer that another process gave when other acknowledgements expire', async () => {
    const over = Promise.withResolvers<void>();
    const wait: Clock['wait'] = (ms, signal) =>
      ms === tokenLifetimeMs ? over.promise : systemClock.wait(ms, signal);
    const clock = { ...systemClock, wait };
    const { server, ada, dm, intake, newAdapter } = await aCommandedStage(new RecordingIntake(), { clock });
    const answered = server.people.uses({ from: ada, name: 'stop' });
    const left = server.people.uses({ from: ada, name: 'queue' });
    await server.waitFor(() => answered.answer === 5 && left.answer === 5);
    const { route } = await intake.waitFor(() =>
      intake.events.find(({ event }) => event.kind === 'message' && event.text === '/stop'),
    );
    const worker = newAdapter(patient);
    await worker.identify(forever);
    expect(await worker.send(aText(route, 'Stopped.'), forever)).toMatchObject({ kind: 'sent' });
    over.resolve();
    await server.waitFor(() => server.answersTo(left).length === 0);
    expect(server.texts(dm.id)).toEqual(['parley: Stopped.']);
  });

  it('answers a slash command as a message once its token has expired', async () => {
    const { server, ada, dm, adapter, intake, pass } = await aCommandedStage();
    const used = server.people.uses({ from: ada, name: 'stop' });
    const { route } = await intake.waitFor(() => intake.events[0]);
    await server.waitFor(() => used.answer === 5);
    pass(16 * 60_000);
    expect(await adapter.send(aText(route, 'Stopped.'), forever)).toMatchObject({ kind: 'sent' });
    expect(server.texts(dm.id).at(-1)).toBe('parley: Stopped.');
  });
});

describe('buttons', () => {
  it('acknowledges a button press at once and hands it over with its data', async () => {
    const { server, ada, dm, intake } = await aCommandedStage();
    const button = { type: 2, style: 1, label: 'Yes', custom_id: 'approve:7' };
    const components = [{ type: 1, components: [button] }];
    const shown = server.world.add(dm, { author: server.bot, text: 'May I?', components });
    const release = intake.hold();
    const pressed = server.people.presses(shown, ada, 'approve:7');
    await server.waitFor(() => pressed.answer === 6);
    release();
    const { event } = await intake.waitFor(() => intake.events[0]);
    expect(event).toEqual({ kind: 'button', messageId: messageId(shown.id), data: 'approve:7' });
  });

  it('keeps buttons until an edit removes them, and answers a late press only to its sender', async () => {
    const stage = await aCommandedStage(new Late());
    const { server, ada, dm, adapter, route } = stage;
    const buttons = [{ id: 'a:k3:y', label: 'Approve', command: '/approve k3' }];
    const question = {
      ...aText(route(dm.id), 'May I?'),
      content: { kind: 'text', text: plainText('May I?'), buttons },
    } as const;
    const sent = await adapter.send(question, forever);
    if (sent.kind !== 'sent' || sent.receipts[0] === undefined) throw new Error('it was not sent');
    const [shown] = server.messages(dm.id);
    if (!shown) throw new Error('nothing is shown');
    const pressed = server.people.presses(shown, ada, 'a:k3:y');
    await server.waitFor(() => server.answersTo(pressed).length === 1);
    expect(pressed.answer).toBe(6);
    const [told] = server.answersTo(pressed);
    expect(told).toMatchObject({ text: 'Already approved.', ephemeralFor: ada.id });
    const edit = {
      kind: 'edit',
      messageId: sent.receipts[0],
      text: plainText('Decided.'),
      buttons: [],
    } as const;
    expect(await adapter.send({ ...question, content: edit }, forever)).toMatchObject({ kind: 'sent' });
    const [after] = server.messages(dm.id).filter(({ id }) => id === shown.id);
    expect(after).toMatchObject({ text: 'Decided.', components: [] });
  });
});

describe('the list of commands', () => {
  it('registers the commands as given, even if the application cannot be read', async () => {
    const { server, adapter } = await aCommandedStage();
    const refused = { kind: 'refuse', status: 404, code: 0, message: '404: Not Found' } as const;
    server.fault(refused, { route: 'GET /applications/@me' });
    await adapter.commands.register([{ name: 'stop', description: 'Ends it' }], forever);
    // In guilds that have the bot and in chats with it, but not in other chats of people who installed it for
    // themselves.
    const places = { integration_types: [0], contexts: [0, 1] };
    expect(server.platform.commands.get('global')).toMatchObject([{ name: 'stop', ...places }]);
  });

  it('reports why commands could not be registered, so that the caller can retry', async () => {
    const { server, adapter } = await aCommandedStage();
    server.fault({ kind: 'rate-limit', retryAfterMs: 60_000 });
    await expect(adapter.commands.register([], forever)).rejects.toMatchObject({
      code: 'channel_unavailable',
      retry: { kind: 'later' },
    });
  });
});

/**
 * What every channel must keep, as one suite. A channel calls `channelContract(name, setup)` with the
 * hands of its local platform; what a platform cannot play is left out and its case is skipped.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import { partKey } from '#contracts/ids.ts';
import type { OutboundContent, SendResult } from '#contracts/outbound.ts';
import { isSameRoute, type ReplyRoute } from '#contracts/route.ts';
import { RecordingIntake } from './recording-intake.ts';

export type ChannelHarness = {
  readonly capabilities: Capabilities;
  /** The id of the bot account on the platform. */
  readonly account: string;
  /** The conversation in which `personSays` writes. */
  readonly route: ReplyRoute;
  /** A new adapter for the account: the first one, or the one of a restarted process. */
  newAdapter(): ChannelAdapter;
  personSays(text: string): Promise<void>;
  /** What the bot wrote and stands in the conversation now, oldest first. */
  standing(): Promise<readonly StandingText[]>;
  close(): Promise<void>;

  /** A person writes in a thread or topic of a group; returns the route an answer must take. */
  personSaysInThread?(text: string): Promise<ReplyRoute>;
  /** The platform shows the bot a message of its own. */
  botEchoes?(text: string): Promise<void>;
  /** The platform delivers its latest event once more. */
  redeliver?(): Promise<void>;
  /** How many events the platform would still deliver after a crash. */
  unacknowledged?(): number;
  /** The platform delivers something that cannot be read. */
  sendsMalformed?(): Promise<void>;
  /** An adapter with credentials the platform refuses. */
  strangerAdapter?(): ChannelAdapter;
  readonly faults?: SendFaults;
};

export type StandingText = FormattedText & { readonly messageId: string };

/** Each makes the next send fail in its way. */
export type SendFaults = {
  rateLimited?(afterMs: number): void;
  unreachable?(): void;
  unreadableMarkup?(): void;
  /** The platform takes the message and the connection ends before its answer. */
  answerLost?(): void;
  /** The platform takes the message and never answers; resolves when it has taken it. */
  answerHangs?(): Promise<void>;
  /** Nothing listens; the returned function ends it. */
  away?(): Promise<() => Promise<void>>;
};

export function channelContract(name: string, setup: () => Promise<ChannelHarness>): void {
  describe(`${name} keeps the channel contract`, () => {
    let harness: ChannelHarness;
    let adapter: ChannelAdapter;
    let intake: RecordingIntake;
    const forever = new AbortController().signal;

    beforeEach(async () => {
      harness = await setup();
      adapter = harness.newAdapter();
      intake = new RecordingIntake();
    });
    afterEach(async () => {
      await adapter.stop();
      await harness.close();
    });

    const begin = async () => {
      await adapter.identify(forever);
      await adapter.start(intake);
    };
    const send = (content: OutboundContent, signal: AbortSignal = forever) =>
      adapter.send({ key: partKey('run-1:1:a'), route: harness.route, content }, signal);
    const sendText = (text: FormattedText, signal?: AbortSignal) => send({ kind: 'text', text }, signal);
    const onlyReceipt = (result: SendResult) => {
      expect(result.kind).toBe('sent');
      const [receipt] = result.kind === 'sent' ? result.receipts : [];
      if (receipt === undefined) throw new Error('the send left no receipt');
      return receipt;
    };

    describe('identity', () => {
      it('finds out the account by its stable id', async () => {
        const account = await adapter.identify(forever);
        expect(account.id).toBe(harness.account);
        expect(account.name).not.toBe('');
      });

      it('says that the platform refused the credentials', async ({ skip }) => {
        const stranger = harness.strangerAdapter?.();
        if (stranger === undefined) return skip();
        await expect(stranger.identify(forever)).rejects.toMatchObject({ code: 'channel_unauthorised' });
      });
    });

    describe('receiving', () => {
      it('hands over what a person wrote with the route its answer must take', async () => {
        await begin();
        await harness.personSays('hello there');
        const envelope = await intake.waitFor(() =>
          intake.events.find(({ event }) => event.kind === 'message'),
        );
        expect(envelope.event).toMatchObject({ kind: 'message', text: 'hello there' });
        expect(isSameRoute(envelope.route, harness.route)).toBe(true);
        expect(envelope.sender).toMatchObject({ isSelf: false, isBot: false });
        expect(envelope.route.account).toBe(harness.account);
      });

      it('keeps the thread in the route', async ({ skip }) => {
        if (harness.personSaysInThread === undefined) return skip();
        await begin();
        const route = await harness.personSaysInThread('in the thread');
        const envelope = await intake.waitFor(() =>
          intake.events.find(({ event }) => event.kind === 'message'),
        );
        expect(route.thread).toBeDefined();
        expect(isSameRoute(envelope.route, route)).toBe(true);
      });

      it('keeps the order in which people wrote', async () => {
        await begin();
        for (const text of ['one', 'two', 'three', 'four']) await harness.personSays(text);
        await intake.waitFor(() => intake.texts.length === 4);
        expect(intake.texts).toEqual(['one', 'two', 'three', 'four']);
      });

      it('gives two equal texts two event keys', async () => {
        await begin();
        await harness.personSays('again');
        await harness.personSays('again');
        await intake.waitFor(() => intake.texts.length === 2);
        expect(new Set(intake.events.map((envelope) => envelope.eventKey)).size).toBe(2);
      });

      it('gives a redelivered event the same key', async ({ skip }) => {
        if (harness.redeliver === undefined) return skip();
        await begin();
        await harness.personSays('only once');
        await intake.waitFor(() => intake.texts.length === 1);
        const handed = intake.batches.length;
        await harness.redeliver();
        await intake.waitFor(() => intake.batches.length > handed);
        expect(intake.texts).toEqual(['only once']);
      });

      it("marks the bot's own messages as its own", async ({ skip }) => {
        if (harness.botEchoes === undefined) return skip();
        await begin();
        await harness.botEchoes('an echo');
        await harness.personSays('a person');
        await intake.waitFor(() => intake.texts.includes('a person'));
        const foreign = intake.events.filter(({ sender }) => !sender.isSelf);
        expect(foreign.map(({ event }) => (event.kind === 'message' ? event.text : event.kind))).toEqual([
          'a person',
        ]);
      });

      it('lets an unreadable event pass and goes on', async ({ skip }) => {
        if (harness.sendsMalformed === undefined) return skip();
        await begin();
        await harness.sendsMalformed();
        await harness.personSays('after the bad one');
        await intake.waitFor(() => intake.texts.includes('after the bad one'));
        expect(intake.unreadable).toHaveLength(1);
        expect(intake.unreadable[0]?.raw).not.toBe('');
        expect(intake.unreadable[0]?.problem).not.toBe('');
      });
    });

    describe('acknowledging', () => {
      it('acknowledges nothing before the intake has stored it', async ({ skip }) => {
        const { unacknowledged } = harness;
        if (unacknowledged === undefined) return skip();
        await begin();
        const release = intake.hold();
        await harness.personSays('wait for it');
        await intake.waitFor(() => intake.attempts > 0);
        await staysTrue(() => unacknowledged() === 1);
        release();
        await intake.waitFor(() => intake.texts.length === 1);
        await expect.poll(unacknowledged, { timeout: 5000 }).toBe(0);
      });

      it('hands over again what the store could not take', async () => {
        await begin();
        intake.failNext('store_unavailable', 2);
        await harness.personSays('third time lucky');
        await intake.waitFor(() => intake.texts.length === 1);
        expect(intake.texts).toEqual(['third time lucky']);
        expect(intake.attempts).toBeGreaterThanOrEqual(3);
      });

      it('leaves what was not stored to the next process', async ({ skip }) => {
        if (harness.unacknowledged === undefined) return skip();
        await begin();
        intake.failNext('store_unavailable', 1000);
        await harness.personSays('survives');
        await intake.waitFor(() => intake.attempts >= 5);
        await adapter.stop();
        expect(intake.texts).toEqual([]);
        expect(harness.unacknowledged()).toBe(1);

        intake = intake.restarted();
        adapter = harness.newAdapter();
        await begin();
        await intake.waitFor(() => intake.texts.length === 1);
        expect(intake.texts).toEqual(['survives']);
      });

      it('misses nothing that was written between two processes', async ({ skip }) => {
        if (harness.unacknowledged === undefined) return skip();
        await begin();
        await harness.personSays('before');
        await intake.waitFor(() => intake.texts.length === 1);
        await adapter.stop();
        await harness.personSays('between');

        intake = intake.restarted();
        adapter = harness.newAdapter();
        await begin();
        await harness.personSays('after');
        await intake.waitFor(() => intake.texts.length === 3);
        expect(intake.texts).toEqual(['before', 'between', 'after']);
      });

      it('stops receiving when another process has the account', async ({ skip }) => {
        if (harness.unacknowledged === undefined) return skip();
        await begin();
        intake.failNext('stale_epoch');
        await harness.personSays('not for me');
        await intake.waitFor(() => intake.attempts === 1);
        await harness.personSays('nor this');
        await adapter.stop();
        expect(intake.attempts).toBe(1);
        expect(harness.unacknowledged()).toBe(2);
      });
    });

    describe('stopping', () => {
      it('hands over nothing after stop, which may be called twice', async () => {
        await begin();
        await harness.personSays('heard');
        await intake.waitFor(() => intake.texts.length === 1);
        await adapter.stop();
        await adapter.stop();
        const { attempts } = intake;
        await harness.personSays('unheard');
        await adapter.stop();
        expect(intake.attempts).toBe(attempts);
      });

      it('may be stopped before it was started', async () => {
        await expect(adapter.stop()).resolves.toBeUndefined();
      });

      it('goes on sending after it stopped receiving', async () => {
        await begin();
        await harness.personSays('hi');
        await intake.waitFor(() => intake.texts.length === 1);
        await adapter.stop();
        onlyReceipt(await sendText(plainText('still here')));
      });
    });

    describe('sending', () => {
      beforeEach(async () => {
        await begin();
        await harness.personSays('hi');
        await intake.waitFor(() => intake.texts.length === 1);
      });

      it('returns the ids of what stands there', async () => {
        const receipt = onlyReceipt(await sendText(plainText('an answer')));
        expect(await harness.standing()).toMatchObject([{ messageId: receipt, text: 'an answer' }]);
      });

      it('sends a text that fills the limit whole', async () => {
        const text = 'limit '
          .repeat(harness.capabilities.text.maxLength / 6 + 1)
          .slice(0, harness.capabilities.text.maxLength - 1);
        onlyReceipt(await sendText(plainText(`${text}!`)));
        expect((await harness.standing()).map((message) => message.text)).toEqual([`${text}!`]);
      });

      it('sends nothing of a text beyond the limit', async () => {
        const result = await sendText(plainText('x'.repeat(harness.capabilities.text.maxLength + 1)));
        expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
        expect(await harness.standing()).toEqual([]);
      });

      it('shows formatting over the characters it was asked for', async () => {
        const text = 'Grüße 👋🏽 bold and code';
        const at = (part: string) => ({ start: text.indexOf(part), length: part.length });
        const spans = [
          { kind: 'bold', ...at('bold') },
          { kind: 'code', ...at('code') },
        ] as const;
        onlyReceipt(await sendText({ text, spans }));
        const [shown] = await harness.standing();
        expect(shown?.text).toBe(text);
        expect(shown?.spans).toEqual(spans);
      });

      it('shows markup characters of the text as they are', async () => {
        const text = '*not bold* _nor this_ <b>nor</b> `that` [a](b) \\ & ~';
        onlyReceipt(await sendText(plainText(text)));
        expect(await harness.standing()).toMatchObject([{ text, spans: [] }]);
      });

      it('edits what it sent, and edits it again to the same', async ({ skip }) => {
        if (!harness.capabilities.canEdit) return skip();
        const messageId = onlyReceipt(await sendText(plainText('first')));
        const edit = { kind: 'edit', messageId, text: plainText('second') } as const;
        expect((await send(edit)).kind).toBe('sent');
        expect(await send(edit)).toEqual({ kind: 'sent', receipts: [messageId] });
        expect(await harness.standing()).toMatchObject([{ messageId, text: 'second' }]);
      });

      it('deletes what it sent, and deletes it again', async ({ skip }) => {
        if (!harness.capabilities.canDelete) return skip();
        const messageId = onlyReceipt(await sendText(plainText('gone soon')));
        expect((await send({ kind: 'delete', messageId })).kind).toBe('sent');
        expect((await send({ kind: 'delete', messageId })).kind).toBe('sent');
        expect(await harness.standing()).toEqual([]);
      });

      it('says how long to wait when there is a rate limit', async ({ skip }) => {
        if (harness.faults?.rateLimited === undefined) return skip();
        harness.faults.rateLimited(7000);
        expect(await sendText(plainText('soon'))).toMatchObject({ kind: 'retry', afterMs: 7000 });
        expect(await harness.standing()).toEqual([]);
      });

      it('says when the conversation cannot be reached', async ({ skip }) => {
        if (harness.faults?.unreachable === undefined) return skip();
        harness.faults.unreachable();
        expect(await sendText(plainText('hello?'))).toMatchObject({
          kind: 'failed',
          failure: { kind: 'unreachable' },
        });
      });

      it('says when the markup was not understood', async ({ skip }) => {
        if (harness.faults?.unreadableMarkup === undefined) return skip();
        harness.faults.unreadableMarkup();
        expect(await sendText(plainText('odd'))).toMatchObject({
          kind: 'failed',
          failure: { kind: 'markup' },
        });
      });

      it('calls a send whose answer was lost unknown and does not repeat it', async ({ skip }) => {
        if (harness.faults?.answerLost === undefined) return skip();
        harness.faults.answerLost();
        expect((await sendText(plainText('once'))).kind).toBe('unknown');
        expect((await harness.standing()).map((message) => message.text)).toEqual(['once']);
      });

      it('calls a send that was aborted in flight unknown', async ({ skip }) => {
        if (harness.faults?.answerHangs === undefined) return skip();
        const taken = harness.faults.answerHangs();
        const aborting = new AbortController();
        const result = sendText(plainText('on its way'), aborting.signal);
        await taken;
        aborting.abort();
        expect((await result).kind).toBe('unknown');
      });

      it('asks to try again when nothing was there to take the message', async ({ skip }) => {
        if (harness.faults?.away === undefined) return skip();
        const comeBack = await harness.faults.away();
        expect((await sendText(plainText('later'))).kind).toBe('retry');
        await comeBack();
        expect(await harness.standing()).toEqual([]);
        onlyReceipt(await sendText(plainText('later')));
      });
    });
  });
}

/** What must never happen can only be watched for a while: long enough for another round trip or twenty. */
async function staysTrue(claim: () => boolean, watchMs = 100): Promise<void> {
  const end = Date.now() + watchMs;
  while (Date.now() < end) {
    expect(claim()).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

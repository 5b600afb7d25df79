/** Ways in which adapters have been wrong, each with the rules of the contract that must notice. */
import { setImmediate } from 'node:timers/promises';
import type { ChannelAdapter, InboundBatch, Intake } from '#contracts/channel.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import { accountId, eventKey, messageId } from '#contracts/ids.ts';
import type { Outbound, SendResult } from '#contracts/outbound.ts';
import type { RouteHost } from '#contracts/route-host.ts';
import type { Breakage } from './example-setup.ts';
import { routeOf } from './ids.ts';

export type BrokenAdapter = {
  readonly name: string;
  readonly receive: 'pull' | 'push' | 'hook';
  readonly breakage: Breakage;
  /** The names of checks, each of which must fail. */
  readonly caughtBy: readonly string[];
};

/** Returns the sound adapter with some of its methods replaced. */
function adapterWith(change: (sound: ChannelAdapter) => Partial<ChannelAdapter>): Breakage {
  return {
    adapter: (sound) => ({
      identify: (signal) => sound.identify(signal),
      start: (intake) => sound.start(intake),
      stop: () => sound.stop(),
      send: (outbound, signal) => sound.send(outbound, signal),
      ...change(sound),
    }),
  };
}

/** Returns the sound adapter with an intake that tampers with what is handed over. */
function intakeWith(change: (intake: Intake) => Partial<Intake>): Breakage {
  return adapterWith((sound) => ({
    start: (intake) =>
      sound.start({
        cursor: intake.cursor,
        anchors: intake.anchors,
        accept: (batch) => intake.accept(batch),
        trouble: (problem) => intake.trouble(problem),
        renamed: (name) => intake.renamed(name),
        gap: (gap) => intake.gap(gap),
        ...change(intake),
      }),
  }));
}

/** Hands the batch with this text over only after the batch that followed it, however long that takes. */
function handsOverLate(intake: Intake, text: string): Pick<Intake, 'accept'> {
  let late: InboundBatch | undefined;
  return {
    accept: async (batch) => {
      if (saying(batch, text)) {
        late = batch;
        return [];
      }
      const answers = await intake.accept(batch);
      if (late !== undefined) await intake.accept(late);
      late = undefined;
      return answers;
    },
  };
}

function eventsWith(change: (envelope: InboundEnvelope) => InboundEnvelope): Breakage {
  return intakeWith((intake) => ({
    accept: (batch) => intake.accept({ ...batch, events: batch.events.map(change) }),
  }));
}

function batchesWith(change: (batch: InboundBatch) => InboundBatch): Breakage {
  return intakeWith((intake) => ({ accept: (batch) => intake.accept(change(batch)) }));
}

function sendsWith(change: (outbound: Outbound) => Outbound): Breakage {
  return adapterWith((sound) => ({ send: (outbound, signal) => sound.send(change(outbound), signal) }));
}

function resultsWith(change: (result: SendResult) => SendResult): Breakage {
  return adapterWith((sound) => ({
    send: async (outbound, signal) => change(await sound.send(outbound, signal)),
  }));
}

function textsWith(change: (text: string) => string): Breakage {
  return sendsWith((outbound) => {
    const { content } = outbound;
    if (content.kind !== 'text') return outbound;
    return {
      ...outbound,
      content: { ...content, text: { ...content.text, text: change(content.text.text) } },
    };
  });
}

const textOf = ({ event }: InboundEnvelope) => (event.kind === 'message' ? event.text : '');
const saying = (batch: InboundBatch, part: string) => batch.events.some((one) => textOf(one).includes(part));

const handingOver: readonly BrokenAdapter[] = [
  {
    name: 'acknowledges before it is stored',
    receive: 'pull',
    breakage: intakeWith((intake) => ({
      accept: async (batch) => {
        intake.accept(batch).catch(() => undefined);
        return [];
      },
    })),
    caughtBy: [
      'acknowledges nothing before the intake has stored it',
      'leaves what was not stored to the next process',
    ],
  },
  {
    name: 'drops an event when the store fails',
    receive: 'pull',
    breakage: intakeWith((intake) => ({ accept: (batch) => intake.accept(batch).catch(() => []) })),
    caughtBy: ['hands over again what the store could not take'],
  },
  {
    name: 'drops a live event when the store fails',
    receive: 'push',
    breakage: intakeWith((intake) => ({ accept: (batch) => intake.accept(batch).catch(() => []) })),
    caughtBy: ['moves an anchor over nothing that is not stored'],
  },
  {
    name: 'goes on after another process took the account over',
    receive: 'pull',
    breakage: intakeWith((intake) => ({
      accept: (batch) =>
        intake.accept(batch).catch((error: unknown) => {
          throw hasCode(error, 'stale_epoch') ? new ParleyError('store_unavailable', 'again') : error;
        }),
    })),
    caughtBy: ['stops receiving when another process has the account'],
  },
  {
    name: 'hands events over in no order',
    receive: 'push',
    breakage: intakeWith((intake) => handsOverLate(intake, 'one')),
    caughtBy: ['keeps the order in which people wrote'],
  },
  {
    name: 'is stopped by an unreadable event',
    receive: 'pull',
    breakage: intakeWith((intake) => ({
      accept: async (batch) => {
        if (batch.unreadable?.length) throw new ParleyError('invalid_input', 'cannot read it');
        return intake.accept(batch);
      },
    })),
    caughtBy: ['lets an unreadable event pass and goes on'],
  },
  {
    name: 'drops an unreadable event without a word',
    receive: 'push',
    breakage: batchesWith((batch) => ({ ...batch, unreadable: [] })),
    caughtBy: ['lets an unreadable event pass and goes on'],
  },
  {
    name: 'keeps its anchors in memory',
    receive: 'push',
    breakage: batchesWith(({ anchors: _anchors, ...batch }) => batch),
    caughtBy: ['misses nothing that was written between two processes'],
  },
  {
    name: 'does not fetch what a broken connection missed',
    receive: 'push',
    breakage: intakeWith((intake) => ({
      accept: async (batch) => (saying(batch, 'unheard') ? [] : intake.accept(batch)),
    })),
    caughtBy: ['fetches what was written while the connection was interrupted'],
  },
  {
    name: 'hands over what is new before what it missed',
    receive: 'push',
    breakage: intakeWith((intake) => handsOverLate(intake, 'missed')),
    caughtBy: ['holds back what is new until what was missed is stored'],
  },
  {
    name: 'keeps its troubles to itself',
    receive: 'pull',
    breakage: intakeWith(() => ({ trouble: () => undefined })),
    caughtBy: ['says that receiving is interrupted, and that it is well again'],
  },
  {
    name: 'never says that the trouble is over',
    receive: 'push',
    breakage: intakeWith((intake) => ({ trouble: (problem) => problem && intake.trouble(problem) })),
    caughtBy: ['says that receiving is interrupted, and that it is well again'],
  },
  {
    name: 'keeps its gaps to itself',
    receive: 'push',
    breakage: intakeWith(() => ({ gap: () => undefined })),
    caughtBy: [
      'says that events are gone, with a reason',
      'says where it cannot fetch what was missed, and goes on',
    ],
  },
];

const mapping: readonly BrokenAdapter[] = [
  {
    name: 'lets its own messages pass',
    receive: 'pull',
    breakage: eventsWith((one) => ({ ...one, sender: { ...one.sender, isSelf: false } })),
    caughtBy: ["marks the bot's own messages as its own"],
  },
  {
    name: 'makes event keys by the moment of arrival',
    receive: 'pull',
    breakage: eventsWith((one) => ({ ...one, eventKey: eventKey(crypto.randomUUID()) })),
    caughtBy: ['gives a redelivered event the same key'],
  },
  {
    name: 'makes event keys of the text',
    receive: 'push',
    breakage: eventsWith((one) => ({ ...one, eventKey: eventKey(`${one.event.kind}:${textOf(one)}`) })),
    caughtBy: ['gives two equal texts two event keys'],
  },
  {
    name: 'makes event keys without the version',
    receive: 'pull',
    breakage: eventsWith((one) => {
      const { event } = one;
      return 'messageId' in event ? { ...one, eventKey: eventKey(event.messageId) } : one;
    }),
    caughtBy: [
      'hands over each edit with its whole text and a key of its own',
      'hands over a reaction and its taking back under two keys',
    ],
  },
  {
    name: 'takes an edit for a message',
    receive: 'push',
    breakage: eventsWith((one) => {
      const { event } = one;
      if (event.kind !== 'edit') return one;
      const rest = { attachments: [], mentionsBot: false, repliesToBot: false };
      return { ...one, event: { ...rest, ...event, kind: 'message' } };
    }),
    caughtBy: ['hands over each edit with its whole text and a key of its own'],
  },
  {
    name: 'takes a forwarded text for one that its sender typed',
    receive: 'pull',
    breakage: eventsWith((one) =>
      one.event.kind === 'message' ? { ...one, event: { ...one.event, provenance: 'typed' } } : one,
    ),
    caughtBy: ['tells what was forwarded from what its sender typed'],
  },
  {
    name: 'takes what was typed for a forward',
    receive: 'push',
    breakage: eventsWith((one) =>
      one.event.kind === 'message' ? { ...one, event: { ...one.event, provenance: 'unknown' } } : one,
    ),
    caughtBy: ['tells what was typed, and worded anew, by its sender'],
  },
  {
    name: 'gives an edit to nobody',
    receive: 'pull',
    breakage: eventsWith((one) =>
      one.event.kind === 'edit' ? { ...one, sender: { ...one.sender, id: '' as typeof one.sender.id } } : one,
    ),
    caughtBy: ['gives an edit the route and the sender of its message'],
  },
  {
    name: 'names the event that deleted instead of the message',
    receive: 'pull',
    breakage: eventsWith((one) =>
      one.event.kind === 'delete' ? { ...one, event: { ...one.event, messageId: messageId('99') } } : one,
    ),
    caughtBy: ['hands over a delete with the message it took away'],
  },
  {
    name: 'answers to the person instead of the conversation',
    receive: 'pull',
    breakage: eventsWith((one) => ({ ...one, route: routeOf(one.route.account, one.sender.id) })),
    caughtBy: ['hands over what a person wrote with the route its answer must take'],
  },
  {
    name: 'takes people for bots',
    receive: 'hook',
    breakage: eventsWith((one) => ({ ...one, sender: { ...one.sender, isBot: true } })),
    caughtBy: ['hands over what a person wrote with the route its answer must take'],
  },
  {
    name: 'forgets the thread',
    receive: 'push',
    breakage: eventsWith((one) => ({ ...one, route: routeOf(one.route.account, one.route.conversation) })),
    caughtBy: ['keeps the thread in the route'],
  },
];

const living: readonly BrokenAdapter[] = [
  {
    name: 'names its account by its display name',
    receive: 'pull',
    breakage: adapterWith((sound) => ({
      identify: async (signal) => {
        const { name } = await sound.identify(signal);
        return { id: accountId(name), name };
      },
    })),
    caughtBy: ['finds out the account by its stable id'],
  },
  {
    name: 'takes refused credentials for an outage',
    receive: 'pull',
    breakage: adapterWith((sound) => ({
      identify: (signal) =>
        sound.identify(signal).catch((cause: unknown) => {
          throw new ParleyError('channel_unavailable', 'no luck', { cause });
        }),
    })),
    caughtBy: ['says that the platform refused the credentials'],
  },
  {
    name: 'says that it has started and hears nothing',
    receive: 'push',
    breakage: adapterWith(() => ({ start: async () => undefined })),
    caughtBy: ['hands over what a person wrote with the route its answer must take'],
  },
  {
    name: 'goes on receiving after stop',
    receive: 'pull',
    breakage: adapterWith(() => ({ stop: async () => undefined })),
    caughtBy: ['hands over nothing after stop, which may be called twice'],
  },
  {
    name: 'begins to receive although it was stopped before its start was over',
    receive: 'pull',
    breakage: adapterWith((sound) => ({
      start: async (intake) => {
        await setImmediate();
        await sound.start(intake);
      },
    })),
    caughtBy: ['ends what a start begins that is told to stop before it is over'],
  },
  {
    name: 'cannot be stopped before it was started',
    receive: 'pull',
    breakage: adapterWith(() => ({
      stop: async () => {
        throw new ParleyError('internal', 'not started');
      },
    })),
    caughtBy: ['may be stopped before it was started'],
  },
  {
    name: 'can be started once only',
    receive: 'hook',
    breakage: adapterWith((sound) => {
      let starts = 0;
      return {
        start: async (intake) => {
          starts += 1;
          if (starts === 1) await sound.start(intake);
        },
      };
    }),
    caughtBy: ['receives again when it is started again'],
  },
  {
    name: 'stops sending when it stops receiving',
    receive: 'pull',
    breakage: adapterWith((sound) => {
      let isStopped = false;
      return {
        stop: async () => {
          isStopped = true;
          await sound.stop();
        },
        send: async (outbound, signal) =>
          isStopped ? { kind: 'retry', afterMs: 0, reason: 'stopped' } : sound.send(outbound, signal),
      };
    }),
    caughtBy: ['goes on sending after it stopped receiving'],
  },
];

const hookRoutes = (wrap: (answer: Parameters<RouteHost['webhook']>[1]) => typeof answer): Breakage => ({
  routes: (host) => ({
    socket: (path, onOpen) => host.socket(path, onOpen),
    upload: (take) => host.upload(take),
    webhook: (path, handle, knowsSecret) => host.webhook(path, wrap(handle), knowsSecret),
  }),
});

const called: readonly BrokenAdapter[] = [
  {
    name: 'takes a webhook from anybody',
    receive: 'hook',
    breakage: hookRoutes(
      (handle) => (request) =>
        handle({ ...request, headers: { ...request.headers, 'x-hook-secret': 'example-hook-secret' } }),
    ),
    caughtBy: ['refuses a caller that does not know the secret'],
  },
  {
    name: 'says that it has taken what it has not stored',
    receive: 'hook',
    breakage: intakeWith((intake) => ({ accept: (batch) => intake.accept(batch).catch(() => []) })),
    caughtBy: ['loses nothing that it said it has taken'],
  },
  {
    name: 'says that it has taken what came while it was stopped',
    receive: 'hook',
    breakage: hookRoutes((handle) => async (request) => {
      const answer = await handle(request);
      return answer.status === 503 ? { status: 200 } : answer;
    }),
    caughtBy: ['loses nothing that it said it has taken'],
  },
];

const sending: readonly BrokenAdapter[] = [
  {
    name: 'calls a dropped connection sent',
    receive: 'pull',
    breakage: resultsWith((result) => (result.kind === 'unknown' ? { kind: 'sent', receipts: [] } : result)),
    caughtBy: ['calls a send whose answer was lost unknown and does not repeat it'],
  },
  {
    name: 'repeats blindly',
    receive: 'pull',
    breakage: adapterWith((sound) => ({
      send: async (outbound, signal) => {
        const result = await sound.send(outbound, signal);
        return result.kind === 'unknown' ? sound.send(outbound, signal) : result;
      },
    })),
    caughtBy: ['calls a send whose answer was lost unknown and does not repeat it'],
  },
  {
    name: 'takes an aborted send for one that may be repeated',
    receive: 'pull',
    breakage: resultsWith((result) =>
      result.kind === 'unknown' ? { kind: 'retry', afterMs: 0, reason: 'aborted' } : result,
    ),
    caughtBy: ['calls a send that was aborted in flight unknown'],
  },
  {
    name: 'throws for expected failures',
    receive: 'pull',
    breakage: resultsWith((result) => {
      if (result.kind === 'failed') throw new Error(result.reason);
      return result;
    }),
    caughtBy: [
      'says when the conversation cannot be reached',
      'says when the markup was not understood',
      'sends nothing of a text beyond the limit',
    ],
  },
  {
    name: 'does not say how long to wait',
    receive: 'pull',
    breakage: resultsWith((result) => (result.kind === 'retry' ? { ...result, afterMs: 0 } : result)),
    caughtBy: ['says how long to wait when there is a rate limit'],
  },
  {
    name: 'gives up when nothing listens',
    receive: 'pull',
    breakage: resultsWith((result) =>
      result.kind === 'retry' ? { kind: 'failed', failure: { kind: 'rejected' }, reason: 'away' } : result,
    ),
    caughtBy: ['asks to try again when nothing was there to take the message'],
  },
  {
    name: 'cuts a text at the limit',
    receive: 'pull',
    breakage: textsWith((text) => text.slice(0, 499)),
    caughtBy: ['sends a text that fills the limit whole', 'sends nothing of a text beyond the limit'],
  },
  {
    name: 'reads markup into the text',
    receive: 'pull',
    breakage: textsWith((text) => text.replaceAll(/[*_]/g, '')),
    caughtBy: ['shows markup characters of the text as they are'],
  },
  {
    name: 'counts characters instead of UTF-16 units',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      if (content.kind !== 'text') return outbound;
      const { text, spans } = content.text;
      const moved = spans.map((span) => ({ ...span, start: [...text.slice(0, span.start)].length }));
      return { ...outbound, content: { kind: 'text', text: { text, spans: moved } } };
    }),
    caughtBy: ['shows formatting over the characters it was asked for'],
  },
  {
    name: 'quotes nothing',
    receive: 'pull',
    breakage: sendsWith(({ route: { replyTo: _, ...route }, ...outbound }) => ({ ...outbound, route })),
    caughtBy: ['shows which message a text answers'],
  },
  {
    name: 'keeps no receipts',
    receive: 'pull',
    breakage: resultsWith((result) => (result.kind === 'sent' ? { kind: 'sent', receipts: [] } : result)),
    caughtBy: ['returns the ids of what stands there'],
  },
  {
    name: 'claims to recognise repeats',
    receive: 'pull',
    breakage: { capabilities: { repeatSafeMs: 60_000 } },
    caughtBy: ['recognises a send that is repeated under its key'],
  },
  {
    name: 'writes anew instead of editing',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      return content.kind === 'edit'
        ? { ...outbound, content: { kind: 'text', text: content.text } }
        : outbound;
    }),
    caughtBy: ['edits what it sent, and edits it again to the same'],
  },
  {
    name: 'sends files without their captions',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      if (content.kind !== 'media') return outbound;
      const { caption: _, ...bare } = content;
      return { ...outbound, content: bare };
    }),
    caughtBy: ['sends a file as it is, under its name and with its caption'],
  },
  {
    name: 'sends a caption without its file',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      if (content.kind !== 'media') return outbound;
      return { ...outbound, content: { kind: 'text', text: content.caption ?? { text: '', spans: [] } } };
    }),
    caughtBy: ['sends nothing of a file beyond the limit, or of one that is gone'],
  },
  {
    name: 'says an emoji instead of reacting with it',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      if (content.kind !== 'reaction') return outbound;
      return { ...outbound, content: { kind: 'text', text: { text: content.emoji, spans: [] } } };
    }),
    caughtBy: ['puts a reaction on what a person wrote'],
  },
  {
    name: 'fails where its change stands already',
    receive: 'pull',
    breakage: adapterWith((sound) => {
      const made = new Set<string>();
      return {
        send: async (outbound, signal) => {
          const change = JSON.stringify(outbound.content);
          const isKnown = made.has(change);
          made.add(change);
          if (isKnown) return { kind: 'failed', failure: { kind: 'rejected' }, reason: 'stands already' };
          return sound.send(outbound, signal);
        },
      };
    }),
    caughtBy: ['deletes what it sent, and deletes it again', 'puts a reaction on what a person wrote'],
  },
];

export const brokenAdapters: readonly BrokenAdapter[] = [
  ...handingOver,
  ...mapping,
  ...living,
  ...called,
  ...sending,
];

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
      'acknowledges an event only after intake has stored it',
      'leaves an event that was not stored to the next process',
    ],
  },
  {
    name: 'drops an event when the store fails',
    receive: 'pull',
    breakage: intakeWith((intake) => ({ accept: (batch) => intake.accept(batch).catch(() => []) })),
    caughtBy: ['hands an event over again that the store could not take'],
  },
  {
    name: 'drops a live event when the store fails',
    receive: 'push',
    breakage: intakeWith((intake) => ({ accept: (batch) => intake.accept(batch).catch(() => []) })),
    caughtBy: ['moves an anchor only over messages that are stored'],
  },
  {
    name: 'keeps receiving after another process took the account',
    receive: 'pull',
    breakage: intakeWith((intake) => ({
      accept: (batch) =>
        intake.accept(batch).catch((error: unknown) => {
          throw hasCode(error, 'stale_epoch') ? new ParleyError('store_unavailable', 'again') : error;
        }),
    })),
    caughtBy: ['stops receiving when another process owns the account'],
  },
  {
    name: 'hands events over in any order',
    receive: 'push',
    breakage: intakeWith((intake) => handsOverLate(intake, 'one')),
    caughtBy: ['keeps the order in which people wrote'],
  },
  {
    name: 'stops at an unreadable event',
    receive: 'pull',
    breakage: intakeWith((intake) => ({
      accept: async (batch) => {
        if (batch.unreadable?.length) throw new ParleyError('invalid_input', 'cannot read it');
        return intake.accept(batch);
      },
    })),
    caughtBy: ['keeps an unreadable event raw and continues'],
  },
  {
    name: 'drops an unreadable event silently',
    receive: 'push',
    breakage: batchesWith((batch) => ({ ...batch, unreadable: [] })),
    caughtBy: ['keeps an unreadable event raw and continues'],
  },
  {
    name: 'keeps its anchors in memory',
    receive: 'push',
    breakage: batchesWith(({ anchors: _anchors, ...batch }) => batch),
    caughtBy: ['misses nothing that was written between two processes'],
  },
  {
    name: 'does not fetch what an interrupted connection missed',
    receive: 'push',
    breakage: intakeWith((intake) => ({
      accept: async (batch) => (saying(batch, 'unheard') ? [] : intake.accept(batch)),
    })),
    caughtBy: ['fetches messages that were written while the connection was interrupted'],
  },
  {
    name: 'hands over new messages before missed ones',
    receive: 'push',
    breakage: intakeWith((intake) => handsOverLate(intake, 'missed')),
    caughtBy: ['stores missed messages before new ones'],
  },
  {
    name: 'does not report problems',
    receive: 'pull',
    breakage: intakeWith(() => ({ trouble: () => undefined })),
    caughtBy: ['reports that receiving is interrupted, and that it works again'],
  },
  {
    name: 'never reports the end of a problem',
    receive: 'push',
    breakage: intakeWith((intake) => ({ trouble: (problem) => problem && intake.trouble(problem) })),
    caughtBy: ['reports that receiving is interrupted, and that it works again'],
  },
  {
    name: 'does not report gaps',
    receive: 'push',
    breakage: intakeWith(() => ({ gap: () => undefined })),
    caughtBy: [
      'reports lost events with a reason',
      'reports a conversation whose missed messages cannot be fetched, and continues',
    ],
  },
];

const mapping: readonly BrokenAdapter[] = [
  {
    name: 'does not mark its own messages',
    receive: 'pull',
    breakage: eventsWith((one) => ({ ...one, sender: { ...one.sender, isSelf: false } })),
    caughtBy: ["marks the bot's own messages as its own"],
  },
  {
    name: 'derives event keys from the time of receipt',
    receive: 'pull',
    breakage: eventsWith((one) => ({ ...one, eventKey: eventKey(crypto.randomUUID()) })),
    caughtBy: ['gives a redelivered event the same key'],
  },
  {
    name: 'derives event keys from the text',
    receive: 'push',
    breakage: eventsWith((one) => ({ ...one, eventKey: eventKey(`${one.event.kind}:${textOf(one)}`) })),
    caughtBy: ['gives two equal texts different event keys'],
  },
  {
    name: 'derives event keys without the version',
    receive: 'pull',
    breakage: eventsWith((one) => {
      const { event } = one;
      return 'messageId' in event ? { ...one, eventKey: eventKey(event.messageId) } : one;
    }),
    caughtBy: [
      'hands over each edit with its whole text under its own key',
      'hands over a reaction and its removal under different keys',
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
    caughtBy: ['hands over each edit with its whole text under its own key'],
  },
  {
    name: 'marks a forwarded text as typed',
    receive: 'pull',
    breakage: eventsWith((one) =>
      one.event.kind === 'message' ? { ...one, event: { ...one.event, provenance: 'typed' } } : one,
    ),
    caughtBy: ['does not mark a forwarded text as typed'],
  },
  {
    name: 'does not mark a typed text as typed',
    receive: 'push',
    breakage: eventsWith((one) =>
      one.event.kind === 'message' ? { ...one, event: { ...one.event, provenance: 'unknown' } } : one,
    ),
    caughtBy: ['marks messages and edits that their sender typed as typed'],
  },
  {
    name: 'reports an edit without its sender',
    receive: 'pull',
    breakage: eventsWith((one) =>
      one.event.kind === 'edit' ? { ...one, sender: { ...one.sender, id: '' as typeof one.sender.id } } : one,
    ),
    caughtBy: ['gives an edit the route and the sender of its message'],
  },
  {
    name: 'names the deleting event instead of the deleted message',
    receive: 'pull',
    breakage: eventsWith((one) =>
      one.event.kind === 'delete' ? { ...one, event: { ...one.event, messageId: messageId('99') } } : one,
    ),
    caughtBy: ["hands over a deletion with the deleted message's id"],
  },
  {
    name: 'replies to the person instead of the conversation',
    receive: 'pull',
    breakage: eventsWith((one) => ({ ...one, route: routeOf(one.route.account, one.sender.id) })),
    caughtBy: ["hands over a person's message with the route of its answer"],
  },
  {
    name: 'takes people for bots',
    receive: 'hook',
    breakage: eventsWith((one) => ({ ...one, sender: { ...one.sender, isBot: true } })),
    caughtBy: ["hands over a person's message with the route of its answer"],
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
    caughtBy: ['identifies the account by its stable id'],
  },
  {
    name: 'reports refused credentials as an outage',
    receive: 'pull',
    breakage: adapterWith((sound) => ({
      identify: (signal) =>
        sound.identify(signal).catch((cause: unknown) => {
          throw new ParleyError('channel_unavailable', 'no luck', { cause });
        }),
    })),
    caughtBy: ['reports refused credentials'],
  },
  {
    name: 'says what an action would do instead of rejecting it',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      if (content.kind !== 'action') return outbound;
      return { ...outbound, content: { kind: 'text', text: { text: content.summary, spans: [] } } };
    }),
    caughtBy: ['rejects an action of a tool that it does not have'],
  },
  {
    name: 'receives nothing after its start',
    receive: 'push',
    breakage: adapterWith(() => ({ start: async () => undefined })),
    caughtBy: ["hands over a person's message with the route of its answer"],
  },
  {
    name: 'keeps receiving after stop',
    receive: 'pull',
    breakage: adapterWith(() => ({ stop: async () => undefined })),
    caughtBy: ['hands over nothing after stop, which can be called twice'],
  },
  {
    name: 'starts to receive although it was stopped during its start',
    receive: 'pull',
    breakage: adapterWith((sound) => ({
      start: async (intake) => {
        await setImmediate();
        await sound.start(intake);
      },
    })),
    caughtBy: ['ends a start that is told to stop before it is complete'],
  },
  {
    name: 'cannot be stopped before it was started',
    receive: 'pull',
    breakage: adapterWith(() => ({
      stop: async () => {
        throw new ParleyError('internal', 'not started');
      },
    })),
    caughtBy: ['can be stopped before it was started'],
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
    caughtBy: ['receives again after a second start'],
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
    caughtBy: ['keeps sending after it stopped receiving'],
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
    name: 'acknowledges a message that it has not stored',
    receive: 'hook',
    breakage: intakeWith((intake) => ({ accept: (batch) => intake.accept(batch).catch(() => []) })),
    caughtBy: ['loses no message that the webhook accepted'],
  },
  {
    name: 'acknowledges a message that arrives after its stop',
    receive: 'hook',
    breakage: hookRoutes((handle) => async (request) => {
      const answer = await handle(request);
      return answer.status === 503 ? { status: 200 } : answer;
    }),
    caughtBy: ['loses no message that the webhook accepted'],
  },
];

const sending: readonly BrokenAdapter[] = [
  {
    name: 'reports a send over a dropped connection as sent',
    receive: 'pull',
    breakage: resultsWith((result) => (result.kind === 'unknown' ? { kind: 'sent', receipts: [] } : result)),
    caughtBy: ['reports a send whose answer was lost as unknown and does not repeat it'],
  },
  {
    name: 'repeats a send whose outcome is unknown',
    receive: 'pull',
    breakage: adapterWith((sound) => ({
      send: async (outbound, signal) => {
        const result = await sound.send(outbound, signal);
        return result.kind === 'unknown' ? sound.send(outbound, signal) : result;
      },
    })),
    caughtBy: ['reports a send whose answer was lost as unknown and does not repeat it'],
  },
  {
    name: 'reports an aborted send as one to repeat',
    receive: 'pull',
    breakage: resultsWith((result) =>
      result.kind === 'unknown' ? { kind: 'retry', afterMs: 0, reason: 'aborted' } : result,
    ),
    caughtBy: ['reports a send that was aborted in flight as unknown'],
  },
  {
    name: 'throws for expected failures',
    receive: 'pull',
    breakage: resultsWith((result) => {
      if (result.kind === 'failed') throw new Error(result.reason);
      return result;
    }),
    caughtBy: [
      'reports a conversation that cannot be reached',
      'reports markup that the platform does not understand',
      'sends no part of a text that exceeds the limit',
    ],
  },
  {
    name: 'does not say how long to wait',
    receive: 'pull',
    breakage: resultsWith((result) => (result.kind === 'retry' ? { ...result, afterMs: 0 } : result)),
    caughtBy: ['says how long a rate limit asks to wait'],
  },
  {
    name: 'gives up if nothing listens',
    receive: 'pull',
    breakage: resultsWith((result) =>
      result.kind === 'retry' ? { kind: 'failed', failure: { kind: 'rejected' }, reason: 'away' } : result,
    ),
    caughtBy: ['asks for a retry if nothing listens'],
  },
  {
    name: 'cuts a text at the limit',
    receive: 'pull',
    breakage: textsWith((text) => text.slice(0, 499)),
    caughtBy: ['sends a text that fills the limit in full', 'sends no part of a text that exceeds the limit'],
  },
  {
    name: 'reads markup into the text',
    receive: 'pull',
    breakage: textsWith((text) => text.replaceAll(/[*_]/g, '')),
    caughtBy: ['shows markup characters of the text literally'],
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
    caughtBy: ['formats exactly the given characters'],
  },
  {
    name: 'does not quote',
    receive: 'pull',
    breakage: sendsWith(({ route: { replyTo: _, ...route }, ...outbound }) => ({ ...outbound, route })),
    caughtBy: ['quotes the message that a text answers'],
  },
  {
    name: 'returns no message ids',
    receive: 'pull',
    breakage: resultsWith((result) => (result.kind === 'sent' ? { kind: 'sent', receipts: [] } : result)),
    caughtBy: ['returns the ids of the messages that it sent'],
  },
  {
    name: 'claims to recognize repeated sends',
    receive: 'pull',
    breakage: { capabilities: { repeatSafeMs: 60_000 } },
    caughtBy: ['recognizes a send that is repeated under its key'],
  },
  {
    name: 'sends another message instead of editing',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      return content.kind === 'edit'
        ? { ...outbound, content: { kind: 'text', text: content.text } }
        : outbound;
    }),
    caughtBy: ['edits a message that it sent, and accepts the same edit again'],
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
    caughtBy: ['sends a file unchanged, with its name and caption'],
  },
  {
    name: 'sends a caption without its file',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      if (content.kind !== 'media') return outbound;
      return { ...outbound, content: { kind: 'text', text: content.caption ?? { text: '', spans: [] } } };
    }),
    caughtBy: ['sends no file that exceeds the limit or is gone'],
  },
  {
    name: 'sends an emoji as text instead of reacting with it',
    receive: 'pull',
    breakage: sendsWith((outbound) => {
      const { content } = outbound;
      if (content.kind !== 'reaction') return outbound;
      return { ...outbound, content: { kind: 'text', text: { text: content.emoji, spans: [] } } };
    }),
    caughtBy: ["puts a reaction on a person's message"],
  },
  {
    name: 'fails if its change is already in force',
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
    caughtBy: [
      'deletes a message that it sent, and accepts the same deletion again',
      "puts a reaction on a person's message",
    ],
  },
];

export const brokenAdapters: readonly BrokenAdapter[] = [
  ...handingOver,
  ...mapping,
  ...living,
  ...called,
  ...sending,
];

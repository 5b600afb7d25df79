import type { IncomingMessage } from 'node:http';
import type { InboundBatch, Intake } from '#contracts/channel.ts';
import { type ConversationId, conversationId } from '#contracts/ids.ts';
import { call, open } from './api.ts';
import { handOver } from './hand-over.ts';
import { batchOf } from './inbound.ts';
import type { Receiver, ReceiverDeps } from './receiver.ts';

/**
 * Receives from a stream. The network reports events only to connected clients and keeps a history by room. So after
 * each new connection the history of every known room is read from its anchor on, while new events wait. An anchor
 * moves in the transaction that stores the events up to it. Resolves once the first connection is open, or when `ends`
 * aborts.
 */
export async function startPush(deps: ReceiverDeps, intake: Intake, ends: AbortSignal): Promise<Receiver> {
  const { clock } = deps;
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, ends]);
  const anchors = new Map(intake.anchors);
  const deliver = async (batch: InboundBatch): Promise<boolean> => {
    const moved = anchorsAfter(batch, anchors);
    const isStored = await handOver(intake, { ...batch, anchors: moved }, { clock, signal });
    if (isStored) for (const [room, anchor] of moved) anchors.set(room, anchor);
    else stopping.abort();
    return isStored;
  };
  const first = Promise.withResolvers<void>();
  const loop = async () => {
    while (!signal.aborted) {
      try {
        const stream = await open(deps.config, { method: 'GET', path: '/stream' }, signal);
        intake.trouble(undefined);
        first.resolve();
        await backfill(deps, { intake, anchors, deliver, signal });
        for await (const line of linesOf(stream)) await takeLine(deps, { line, intake, deliver });
      } catch {
        // A stream that ends is opened again; the reason is reported below.
      }
      if (signal.aborted) return;
      intake.trouble({ kind: 'unreachable', detail: 'the live connection has ended' });
      await clock.wait(500, signal);
    }
  };
  const running = loop().finally(() => first.resolve());
  await first.promise;
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

/** Reads only on demand, so events that come while the history is read wait in the stream, and none is lost. */
async function* linesOf(stream: IncomingMessage): AsyncIterable<string> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

type Taking = {
  readonly line: string;
  readonly intake: Intake;
  readonly deliver: (batch: InboundBatch) => Promise<boolean>;
};

async function takeLine({ account }: ReceiverDeps, { line, intake, deliver }: Taking): Promise<void> {
  const raw: unknown = JSON.parse(line);
  const isLoss = typeof raw === 'object' && raw !== null && 'kind' in raw && raw.kind === 'lost';
  if (isLoss) intake.gap({ reason: 'the network says that events were lost' });
  else await deliver(batchOf([raw], account));
}

type Backfill = {
  readonly intake: Intake;
  readonly anchors: ReadonlyMap<ConversationId, string>;
  readonly deliver: (batch: InboundBatch) => Promise<boolean>;
  readonly signal: AbortSignal;
};

/** Reads what was missed, room by room; reports where that isn't possible. */
async function backfill(deps: ReceiverDeps, { intake, anchors, deliver, signal }: Backfill): Promise<void> {
  for (const [conversation, anchor] of anchors) {
    const path = `/rooms/${encodeURIComponent(conversation)}/messages?after=${anchor}`;
    const end = await call(deps.config, { method: 'GET', path }, signal);
    if (signal.aborted) return;
    if (end.kind !== 'answer' || end.status !== 200) {
      intake.gap({ conversation, reason: 'the network does not give out the history of the room' });
      continue;
    }
    // The server is the other half of this example; a real one would need a schema here.
    const { messages } = end.body as unknown as { readonly messages: readonly unknown[] };
    if (messages.length > 0) await deliver(batchOf(messages, deps.account));
  }
}

/** Returns the newest message of each room; ids grow, and an anchor never moves back. */
function anchorsAfter(
  { events }: InboundBatch,
  known: ReadonlyMap<ConversationId, string>,
): ReadonlyMap<ConversationId, string> {
  const moved = new Map<ConversationId, string>();
  for (const { route, event } of events) {
    if (event.kind !== 'message') continue;
    const room = conversationId(route.conversation);
    const last = moved.get(room) ?? known.get(room) ?? '0';
    if (Number(event.messageId) > Number(last)) moved.set(room, event.messageId);
  }
  return moved;
}

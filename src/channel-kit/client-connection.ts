import type { Intake } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { ClientEvent } from '#contracts/feed.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineReader } from '#contracts/timeline.ts';
import {
  type ConversationAction,
  type ConversationInput,
  newConversation,
  readLimit,
  stepConversation,
} from './client-conversation.ts';
import { ackOf, type EffectFrame, type ServerFrame } from './client-frames.ts';
import { createMutex } from './in-turn.ts';

/** Carries frames to and from one client, each as a WebSocket message or a line. */
export type ClientLink = {
  send(text: string): void;
  /** Asks the client to come back later. */
  close(): void;
  onText(listener: (text: string) => void): void;
  /** Pauses or resumes reading from the client, which keeps what it sends meanwhile. */
  setPaused(isPaused: boolean): void;
  onClose(listener: () => void): void;
};

/** A connected client. */
export type ClientConnection = {
  /** Returns the conversation that the client shows; undefined until it has said hello. */
  readonly route: () => ReplyRoute | undefined;
  readonly push: (frame: ServerFrame) => void;
  readonly close: () => void;
};

export type ClientConnectionDeps = {
  readonly link: ClientLink;
  /** Returns the channel's route to one of its conversations. */
  routeTo(conversation: string): ReplyRoute;
  /** Maps a frame that arrived at `sentAt`, ms, to an envelope. */
  envelopeOf(frame: EffectFrame, route: ReplyRoute, sentAt: number): InboundEnvelope;
  readonly intake: Intake;
  readonly timeline: TimelineReader;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when another process has taken over the account, so that nothing more may be accepted here. */
  readonly onStale: () => void;
  /** Interval at which the conversation is read even without an event, ms. */
  readonly lookMs?: number;
};

/** Events may be lost between processes, and a client that hears nothing for longer has lost its connection. */
const defaultLookMs = 30_000;
/** Number of a client's frames that may wait for the store before reading is paused. */
const maxWaiting = 64;

/**
 * Performs what `stepConversation` decides. Messages of one client are accepted one at a time. When the store fails,
 * the client is cut off, so that it resends everything unacknowledged in order. Reading from a client pauses while it
 * sends faster than the store accepts.
 */
export function openClientConnection(deps: ClientConnectionDeps): ClientConnection {
  const ended = new AbortController();
  let state = newConversation;
  let route: ReplyRoute | undefined;
  const { hold, holdInOrder } = createHolds(deps.link);

  const push = (frame: ServerFrame) => {
    if (!ended.signal.aborted) deps.link.send(JSON.stringify(frame));
  };
  const close = () => {
    ended.abort();
    deps.link.close();
  };
  const input = (next: ConversationInput) => {
    if (ended.signal.aborted) return;
    const step = stepConversation(state, next);
    state = step.state;
    for (const action of step.actions) perform(action);
  };
  /** Runs the work unless the client is gone. A fault cuts the client off; it then reconnects and catches up. */
  const attempt = async (work: () => Promise<void>) => {
    if (ended.signal.aborted) return;
    try {
      await work();
    } catch (error) {
      deps.log.warn({ reason: String(error) }, 'client.disconnected');
      push(unavailable);
      close();
      if (hasCode(error, 'stale_epoch')) deps.onStale();
    }
  };
  const onEvent = (event: ClientEvent) => input({ kind: 'event', event });
  const { look, watch } = createWatch(deps, { onEvent, push }, ended.signal);
  const take = async (at: ReplyRoute, frame: EffectFrame) => {
    push(await accept(deps, at, frame));
    // The message may have entered a session other than the watched one.
    if (state.of !== undefined && state.of !== deps.timeline.sessionOf(at)) look();
  };
  const perform = (action: ConversationAction) => {
    if (action.kind === 'reply') return push(action.frame);
    if (action.kind === 'watch') route = deps.routeTo(action.conversation);
    const at = route;
    if (at === undefined) return;
    switch (action.kind) {
      case 'watch':
        return watch(at);
      case 'read':
        return void hold(attempt(async () => input(await read(deps, at, action.after))));
      case 'accept':
        return void holdInOrder(() => attempt(() => take(at, action.frame)));
      default:
        return action satisfies never;
    }
  };

  deps.link.onText((text) => input({ kind: 'frame', text }));
  deps.link.onClose(() => ended.abort());
  return { route: () => route, push, close };
}

/** Counts the work that a client waits for, and pauses reading from it while there is too much. */
function createHolds(link: ClientLink) {
  let waiting = 0;
  const inTurn = createMutex();
  const hold = async (work: Promise<void>): Promise<void> => {
    waiting += 1;
    if (waiting === maxWaiting) link.setPaused(true);
    await work;
    waiting -= 1;
    if (waiting === maxWaiting - 1) link.setPaused(false);
  };
  return { hold, holdInOrder: (work: () => Promise<void>) => hold(inTurn(work)) };
}

type Watcher = { onEvent(event: ClientEvent): void; push(frame: ServerFrame): void };

/** Watches one session at a time; `look` reads it even without an event. */
function createWatch(
  { timeline, lookMs = defaultLookMs }: ClientConnectionDeps,
  { onEvent, push }: Watcher,
  ended: AbortSignal,
) {
  const changed = { kind: 'changed' } as const;
  const look = () => onEvent(changed);
  // An unreachable store doesn't cut the client off; the event shows it that its connection is alive.
  const lookIfPossible = (at: ReplyRoute) =>
    timeline.standing(at).then(look, () => push({ type: 'event', event: changed }));
  const lookAgain = (at: ReplyRoute) => {
    const timer = setInterval(() => void lookIfPossible(at), lookMs).unref();
    ended.addEventListener('abort', () => clearInterval(timer), { once: true });
  };
  let watching: AbortController | undefined;
  const watch = (at: ReplyRoute) => {
    if (watching === undefined) lookAgain(at);
    watching?.abort();
    watching = new AbortController();
    timeline.watch(at, onEvent, AbortSignal.any([ended, watching.signal]));
  };
  return { look, watch };
}

async function read(
  { timeline }: ClientConnectionDeps,
  route: ReplyRoute,
  after: number | undefined,
): Promise<ConversationInput> {
  const of = timeline.sessionOf(route);
  const items = await timeline.read(route, { limit: readLimit, ...(after === undefined ? {} : { after }) });
  return { kind: 'items', of, items, standing: await timeline.standing(route) };
}

/** Resolves with the acknowledgement once the frame is stored; the frame's id makes it safe to repeat. */
async function accept(
  deps: ClientConnectionDeps,
  route: ReplyRoute,
  frame: EffectFrame,
): Promise<ServerFrame> {
  const envelope = deps.envelopeOf(frame, route, deps.clock.now());
  const [acceptance] = await deps.intake.accept({ events: [envelope] });
  if (acceptance === undefined) throw new ParleyError('internal', `No acceptance for frame ${frame.id}.`);
  return ackOf(frame.id, acceptance);
}

const unavailable: ServerFrame = {
  type: 'problem',
  code: 'unavailable',
  message: "Parley can't store messages right now. Unacknowledged messages are kept and sent again.",
  retry: true,
};

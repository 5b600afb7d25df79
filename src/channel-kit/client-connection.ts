import type { Intake } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hasCode, ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineEvent, TimelineReader } from '#contracts/timeline.ts';
import {
  type ConversationAction,
  type ConversationInput,
  newConversation,
  readLimit,
  stepConversation,
} from './client-conversation.ts';
import { ackOf, type EffectFrame, type ServerFrame } from './client-frames.ts';
import { workingInTurn } from './in-turn.ts';

/** How frames travel to and from one client: a WebSocket message or a line each. */
export type ClientLink = {
  send(text: string): void;
  /** Asks the client to come back later. */
  close(): void;
  onText(listener: (text: string) => void): void;
  /** Stops reading from the client, or goes on: what it sends meanwhile stays with it. */
  setPaused(isPaused: boolean): void;
  onClose(listener: () => void): void;
};

/** One client that is connected. */
export type ClientConnection = {
  /** Where the client looks; undefined until it said hello. */
  readonly route: () => ReplyRoute | undefined;
  readonly push: (frame: ServerFrame) => void;
  readonly close: () => void;
};

export type ClientConnectionDeps = {
  readonly link: ClientLink;
  /** The channel's route to one of its conversations. */
  routeTo(conversation: string): ReplyRoute;
  /** The channel's mapping of a frame that arrived at `sentAt`, ms. */
  envelopeOf(frame: EffectFrame, route: ReplyRoute, sentAt: number): InboundEnvelope;
  readonly intake: Intake;
  readonly timeline: TimelineReader;
  readonly clock: Clock;
  readonly log: Log;
  /** Another process has the account now: nothing more may be accepted here. */
  readonly onStale: () => void;
  /** How often the conversation is read without a reason, ms. */
  readonly lookMs?: number;
};

/** An event may be lost between processes. And a client that hears nothing for longer than this has lost its connection. */
const defaultLookMs = 30_000;
/** Frames of one client that may wait for the store before no more are read. */
const maxWaiting = 64;

/**
 * Performs what `stepConversation` decides. Messages of one client are accepted one after the other;
 * when the store fails, the client is cut off, so that it sends everything unacknowledged again in order. A client that
 * sends faster than the store takes isn't read from meanwhile.
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
  /** Runs unless the client is gone; a fault cuts it off, and it comes back and catches up. */
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
  const onEvent = (event: TimelineEvent) => input({ kind: 'event', event });
  const { look, watch } = createWatch(deps, { onEvent, push }, ended.signal);
  const take = async (at: ReplyRoute, frame: EffectFrame) => {
    push(await accept(deps, at, frame));
    // It may have entered another session than the one that is watched.
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

/** Counts what a client waits for, and reads no more from it while that is too much. */
function createHolds(link: ClientLink) {
  let waiting = 0;
  const inTurn = workingInTurn();
  const hold = async (work: Promise<void>): Promise<void> => {
    waiting += 1;
    if (waiting === maxWaiting) link.setPaused(true);
    await work;
    waiting -= 1;
    if (waiting === maxWaiting - 1) link.setPaused(false);
  };
  return { hold, holdInOrder: (work: () => Promise<void>) => hold(inTurn(work)) };
}

type Watcher = { onEvent(event: TimelineEvent): void; push(frame: ServerFrame): void };

/** Hears of one session at a time; `look` reads without a reason. */
function createWatch(
  { timeline, lookMs = defaultLookMs }: ClientConnectionDeps,
  { onEvent, push }: Watcher,
  ended: AbortSignal,
) {
  const changed = { kind: 'changed' } as const;
  const look = () => onEvent(changed);
  // A client isn't cut off for a store that is away: it hears that its connection stands.
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
  message: 'Parley cannot store messages right now. What is not acknowledged is kept and sent again.',
  retry: true,
};

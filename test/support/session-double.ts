/**
 * Plays the gateway behind a session-bound channel: the two ports that such a channel sees, kept in
 * memory and driven by the test. It answers nothing on its own except through `onMessage`.
 */
import { type Acceptance, type KnownOutcome, reasonOf } from '#contracts/acceptance.ts';
import type { Intake } from '#contracts/channel.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { ClientEvent } from '#contracts/feed.ts';
import { inboxId, type SessionKey } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineActivity, TimelineItem, TimelineReader } from '#contracts/timeline.ts';

export type SessionDouble = {
  readonly intake: Intake;
  readonly timeline: TimelineReader;
  /** Every stored event, once each, in the order of storing. */
  readonly stored: readonly InboundEnvelope[];
  /** Decides what becomes of a new event; undefined accepts it. */
  decide: (envelope: InboundEnvelope) => Acceptance | undefined;
  /** Called for each newly stored event. */
  onStored: (envelope: InboundEnvelope) => void;
  /** While true, `accept` and `read` reject as they do when the store is unreachable. */
  isAway: boolean;
  /** The current activity, as the store reports it. */
  standing: TimelineActivity;
  /** The session that every route leads to. */
  sessionName: string;
  /** Returns the number of watchers. */
  readonly watching: () => number;
  say(route: ReplyRoute, item: Partial<TimelineItem> & { readonly text: string }): TimelineItem;
  setState(messageId: string, state: string): void;
  emit(route: ReplyRoute, event: ClientEvent): void;
};

export function createSessionDouble(): SessionDouble {
  const stored: InboundEnvelope[] = [];
  const outcomes = new Map<string, KnownOutcome>();
  const items: { route: string; item: TimelineItem }[] = [];
  const watchers = new Set<{ route: string; onEvent: (event: ClientEvent) => void }>();
  let position = 0;

  const double: SessionDouble = {
    stored,
    isAway: false,
    standing: {},
    sessionName: 'a session',
    decide: () => undefined,
    onStored: () => undefined,
    watching: () => watchers.size,
    intake: {
      cursor: undefined,
      anchors: new Map(),
      trouble: () => undefined,
      renamed: () => undefined,
      gap: () => undefined,
      accept: async ({ events }) => {
        await new Promise(setImmediate);
        if (double.isAway) throw new ParleyError('store_unavailable', 'The store is away.');
        return events.map(accept);
      },
    },
    timeline: {
      sessionOf: () => double.sessionName,
      read: async (route, { after = 0, limit }) => {
        await new Promise(setImmediate);
        if (double.isAway) throw new ParleyError('store_unavailable', 'The store is away.');
        const found = items.filter((each) => each.route === nameOf(route) && each.item.position > after);
        const chosen = after > 0 ? found.slice(0, limit) : found.slice(-limit);
        return chosen.map((each) => each.item);
      },
      standing: async () => double.standing,
      watch: (route, onEvent, signal) => {
        const watcher = { route: nameOf(route), onEvent };
        watchers.add(watcher);
        signal.addEventListener('abort', () => watchers.delete(watcher), { once: true });
      },
    },
    say: (route, item) => {
      position += 1;
      const full: TimelineItem = {
        position,
        at: 1_790_000_000_000 + position * 1000,
        author: { kind: 'agent' },
        messageId: `part-${position}`,
        channel: route.channel,
        state: 'answered',
        ...item,
      };
      items.push({ route: nameOf(route), item: full });
      double.emit(route, { kind: 'changed' });
      return full;
    },
    setState: (messageId, state) => {
      for (const each of items) {
        if (each.item.messageId === messageId) each.item = { ...each.item, state };
      }
      for (const watcher of watchers) watcher.onEvent({ kind: 'changed' });
    },
    emit: (route, event) => {
      for (const watcher of watchers) if (watcher.route === nameOf(route)) watcher.onEvent(event);
    },
  };

  const accept = (envelope: InboundEnvelope): Acceptance => {
    const of = outcomes.get(envelope.eventKey);
    if (of !== undefined) return { kind: 'duplicate', of };
    stored.push(envelope);
    const acceptance: Acceptance = double.decide(envelope) ?? {
      kind: 'accepted',
      inboxId: inboxId(envelope.eventKey),
      sessionKey: 'key' as SessionKey,
    };
    outcomes.set(envelope.eventKey, { outcome: acceptance.kind, reason: reasonOf(acceptance) });
    if (acceptance.kind === 'accepted' && envelope.event.kind === 'message') {
      const { text, messageId, attachments } = envelope.event;
      double.say(envelope.route, {
        text,
        messageId,
        author: { kind: 'person', name: 'you' },
        ...(attachments.length > 0 && { files: attachments.map(({ name, kind }) => name ?? kind) }),
        state: 'waiting',
      });
    }
    queueMicrotask(() => double.onStored(envelope));
    return acceptance;
  };
  return double;
}

function nameOf(route: ReplyRoute): string {
  return `${route.channel}/${route.account}/${route.conversation}`;
}

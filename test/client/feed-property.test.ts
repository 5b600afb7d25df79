/**
 * A model of a gateway with two clients, page and terminal. Whatever is committed, and however the feed's events arrive
 * (lost, twice, again much later) and the reads of the store overlap with them, both clients end up with what a client
 * reads that has just connected.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type ConversationInput as GatewayInput,
  newConversation,
  readLimit,
  stepConversation,
} from '#channel-kit/client-conversation.ts';
import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { ChildView } from '#contracts/child.ts';
import type { ClientEvent } from '#contracts/feed.ts';
import type { TimelineActivity, TimelineItem } from '#contracts/timeline.ts';
import { type ChatLine, emptyTranscript, received } from '../../src/cli/chat-transcript.ts';
import { emptyConversation, knownEvents, messagesInOrder, reduce } from '../../src/client/conversation.js';
import type { Conversation } from '../../src/client/conversation-types.ts';
import { holds } from '../support/holds.ts';

const kinds = [
  'ask',
  'start',
  'tool',
  'end tool',
  'steer',
  'park',
  'output',
  'summary',
  'answer',
  'spawn',
] as const;
const fates = ['heard', 'lost', 'twice'] as const;

type Call = { readonly callId: string; readonly name: string };
type Read = { readonly after?: number; items?: readonly TimelineItem[]; standing?: TimelineActivity };

/** The store, and a connection that reads it step by step. */
class Gateway {
  readonly #items: TimelineItem[] = [];
  readonly #told: ClientEvent[] = [];
  readonly #frames: (frame: ServerFrame) => void;
  #children: readonly ChildView[] = [];
  #run: { readonly runId: string; readonly calls: readonly Call[]; readonly waitsFor?: string } | undefined;
  #count = 0;
  #state = newConversation;
  #reads: Read[] = [];

  constructor(onFrame: (frame: ServerFrame) => void) {
    this.#frames = onFrame;
    this.connect();
  }

  connect(): void {
    this.#state = newConversation;
    this.#reads = [];
    this.#step({ kind: 'frame', text: JSON.stringify({ type: 'hello', events: knownEvents }) });
  }

  /** Commits what happens next, and returns the event that tells it. */
  commit(kind: (typeof kinds)[number]): ClientEvent {
    const run = this.#run;
    const [call] = run?.calls ?? [];
    if (kind === 'ask') this.#say({ kind: 'person', name: 'ann' }, 'waiting');
    if (kind === 'spawn') this.#spawn();
    if (kind === 'ask' || kind === 'spawn') return { kind: 'changed' };
    const runId = run?.runId ?? `run ${++this.#count}`;
    if (!run || kind === 'start') {
      this.#run = { runId, calls: run?.calls ?? [] };
      return { kind: 'run', runId, state: 'started' };
    }
    if (kind === 'tool') {
      const started = { callId: `call ${++this.#count}`, name: this.#count % 2 === 0 ? 'glob' : 'grep' };
      this.#run = { ...run, calls: [...run.calls, started] };
      return { kind: 'tool', runId, ...started, state: 'started' };
    }
    if (kind === 'end tool' && call) {
      this.#run = { ...run, calls: run.calls.slice(1) };
      return { kind: 'tool', runId, ...call, state: 'done' };
    }
    if (kind === 'output' && call)
      return { kind: 'output', runId, callId: call.callId, text: `${++this.#count}` };
    if (kind === 'summary') return { kind: 'compaction', runId, state: 'started', progress: Math.random() };
    if (kind === 'park') {
      this.#run = { ...run, waitsFor: 'an approval' };
      return { kind: 'parked', runId, reason: 'an approval' };
    }
    if (kind !== 'answer') return { kind: 'run', runId, state: 'steered' };
    this.#say({ kind: 'agent' }, 'sent');
    for (const [index, item] of this.#items.entries())
      this.#items[index] = { ...item, state: item.state === 'waiting' ? 'answered' : item.state };
    this.#run = undefined;
    return { kind: 'run', runId, state: 'ended' };
  }

  hear(event: ClientEvent): void {
    this.#told.push(event);
    this.#step({ kind: 'event', event });
  }

  /** Tells an earlier event once more. */
  repeat(index: number): void {
    const event = this.#told[index % Math.max(1, this.#told.length)];
    if (event) this.#step({ kind: 'event', event });
  }

  /** Takes the read that is on its way one step further: items, then activity, then its arrival. */
  read(): boolean {
    const [read] = this.#reads;
    if (!read) return false;
    const { after = 0 } = read;
    if (!read.items) read.items = this.#items.filter(({ position }) => position > after).slice(0, readLimit);
    else if (!read.standing) read.standing = this.#standing();
    else {
      this.#reads.shift();
      this.#step({ kind: 'items', of: 's', items: read.items, standing: read.standing });
    }
    return true;
  }

  /** Lets a quiet while pass, after which the conversation is read even without an event. */
  settle(): void {
    this.#step({ kind: 'event', event: { kind: 'changed' } });
    while (this.read());
  }

  #standing(): TimelineActivity {
    const run = this.#run;
    return {
      ...(run && {
        run: {
          runId: run.runId,
          tools: run.calls.map(({ name }) => name),
          callIds: run.calls.map(({ callId }) => callId),
          ...(run.waitsFor !== undefined && { waitsFor: run.waitsFor }),
        },
      }),
      queueMode: 'steer',
      children: this.#children,
    };
  }

  #say(author: TimelineItem['author'], state: string): void {
    const position = ++this.#count;
    const text = `text ${position}`;
    this.#items.push({
      position,
      at: position,
      author,
      messageId: `m${position}`,
      channel: 'x',
      text,
      state,
    });
  }

  #spawn(): void {
    const id = `child ${++this.#count}`;
    const child = { id, depth: 1, name: id, agentId: 'main', createdAt: this.#count, tokens: 0, cost: 0 };
    const ended = this.#children.map((each) => ({ ...each, state: 'done' as const }));
    this.#children = [...ended, { ...child, state: 'running' }];
  }

  #step(input: GatewayInput): void {
    const { state, actions } = stepConversation(this.#state, input);
    this.#state = state;
    for (const action of actions) {
      if (action.kind === 'read') this.#reads.push({ ...action });
      if (action.kind === 'reply') this.#frames(action.frame);
    }
  }
}

/** What a client shows that the store knows too. */
function storedPartOf({ run, messages, position, queueMode, children }: Conversation) {
  const open = run?.tools
    .filter(({ state }) => state === 'started')
    .map(({ callId, name }) => `${callId} ${name}`)
    .toSorted();
  const known = run && { id: run.id, waitsFor: run.waitsFor, open };
  return { messages: [...messages.values()], position, queueMode, children, run: known };
}

const moves = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constantFrom(...kinds), fate: fc.constantFrom(...fates) }),
    fc.constant('read' as const),
    fc.nat(50),
  ),
  { maxLength: 60 },
);

it('shows on page and terminal what is stored, whatever order commits, events and reads come in', () => {
  holds(
    fc.property(moves, (sequence) => {
      let page = emptyConversation;
      let transcript = emptyTranscript;
      const lines: ChatLine[] = [];
      const gateway = new Gateway((frame) => {
        page = reduce(page, { kind: 'frame', frame });
        const step = received(transcript, frame, { withHistory: true, mediaDir: '/media' });
        transcript = step.transcript;
        lines.push(...step.lines);
      });
      while (gateway.read());
      for (const move of sequence) {
        if (move === 'read') gateway.read();
        else if (typeof move === 'number') gateway.repeat(move);
        else {
          const event = gateway.commit(move.kind);
          for (let time = ['lost', 'heard', 'twice'].indexOf(move.fate); time > 0; time -= 1)
            gateway.hear(event);
        }
      }
      gateway.settle();
      const lived = storedPartOf(page);
      expect(storedPartOf(transcript.conversation)).toEqual(lived);
      const printed = lines
        .filter(({ kind }) => kind === 'person' || kind === 'agent')
        .map(({ text }) => text);
      expect(printed.toSorted()).toEqual(
        messagesInOrder(page)
          .map(({ text }) => text)
          .toSorted(),
      );
      page = emptyConversation;
      gateway.connect();
      while (gateway.read());
      expect(lived).toEqual(storedPartOf(page));
    }),
    { interruptAfterTimeLimit: 2_000, numRuns: 20_000 },
  );
});

const events = fc.oneof(
  fc.record({
    kind: fc.constant('tool' as const),
    runId: fc.constantFrom('a', 'b'),
    callId: fc.constantFrom('1', '2'),
    name: fc.constantFrom('glob', 'grep'),
    state: fc.constantFrom('started', 'done', 'failed', 'skipped'),
  }),
  fc.record({
    kind: fc.constant('output' as const),
    runId: fc.constantFrom('a', 'b'),
    callId: fc.constantFrom('1', '2'),
    text: fc.string(),
  }),
  fc.record({
    kind: fc.constant('run' as const),
    runId: fc.constantFrom('a', 'b'),
    state: fc.constantFrom('started', 'steered', 'ended'),
  }),
  fc.record({
    kind: fc.constant('compaction' as const),
    runId: fc.constantFrom('a', 'b'),
    state: fc.constantFrom('started', 'done', 'failed'),
    progress: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
);

it('applies an event that arrives twice once', () => {
  const apply = (state: Conversation, event: ClientEvent) =>
    reduce(state, { kind: 'frame', frame: { type: 'event', event } });
  holds(
    fc.property(fc.array(events, { maxLength: 20 }), (all) => {
      const once = all.reduce(apply, emptyConversation);
      const twice = all.flatMap((event) => [event, event]).reduce(apply, emptyConversation);
      expect(twice).toEqual(once);
    }),
    { interruptAfterTimeLimit: 1_000, numRuns: 20_000 },
  );
});

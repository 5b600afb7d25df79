import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { ClientEvent, FeedEvent } from '#contracts/feed.ts';
import type { FeedFrame } from '#contracts/feed-frame.ts';
import {
  emptyConversation,
  entriesInOrder,
  isWorking,
  messagesInOrder,
  notesOf,
  reduce,
  resumeFrom,
  retryIdOf,
} from '../../src/client/conversation.js';
import type { Conversation, ConversationInput } from '../../src/client/conversation-types.ts';
import { holds } from '../support/holds.ts';

const after = (...frames: readonly (ServerFrame | FeedFrame)[]) =>
  frames.reduce((state, frame) => reduce(state, { kind: 'frame', frame }), emptyConversation);
const unsent: ConversationInput = { kind: 'unsent', frame: { id: 'own', text: 'hi' }, at: 1 };
const own = (state: string) =>
  ({
    type: 'items',
    items: [
      {
        position: 1,
        at: 1,
        author: { kind: 'person', name: 'you' },
        messageId: 'own',
        channel: 'x',
        text: 'hi',
        state,
      },
    ],
  }) as const;
const part: ServerFrame = { type: 'message', messageId: 'p', text: 'hello', spans: [], at: 2 };
const stored = {
  type: 'items',
  items: [
    {
      position: 2,
      at: 2,
      author: { kind: 'agent' },
      messageId: 'p',
      channel: 'x',
      text: 'hello',
      state: 'sent',
    },
  ],
} as const;

describe('the conversation of the page', () => {
  it('sends a failed message once more under one id, and each retry under the next', () => {
    const first = '00000000-0000-4000-8000-0000000000ff';
    const failed = (messageId: string, over: object = {}) => {
      const [item] = own('failed').items;
      return { ...item, messageId, channel: 'web', ...over };
    };
    const retryOf = (...items: readonly ReturnType<typeof failed>[]) => {
      const state = after({ type: 'items', items });
      return messagesInOrder(state).map((message) => retryIdOf(state, message, 'web'));
    };
    const second = '00000000-0000-4000-8000-000000000100';
    expect(retryOf(failed(first))).toEqual([second]);
    expect(retryOf(failed(first), failed(second))).toEqual([
      undefined,
      '00000000-0000-4000-8000-000000000101',
    ]);
    for (const over of [{ state: 'answered' }, { channel: 'telegram' }, { files: ['a.txt'] }])
      expect(retryOf(failed(first, over))).toEqual([undefined]);
  });

  it('forgets activity with its connection and learns it again from the store', () => {
    const started: ServerFrame = { type: 'event', event: { kind: 'run', runId: 'r', state: 'started' } };
    const growing: ServerFrame = { type: 'preview', text: 'Once', spans: [] };
    const away = reduce(after(own('taken'), started, growing), { kind: 'connection', state: 'lost' });
    expect(away).toMatchObject({ run: undefined, preview: undefined });
    expect(resumeFrom(away).after).toBe(0);
    const back = (standing: ServerFrame, state: string) =>
      [own(state), standing].reduce((known, frame) => reduce(known, { kind: 'frame', frame }), away);
    expect(isWorking(back({ type: 'standing', hellos: 1 }, 'answered'))).toBe(false);
    const run = { runId: 'r', tools: ['glob'], waitsFor: 'an approval' };
    expect(back({ type: 'standing', hellos: 1, run }, 'taken').run).toMatchObject({
      tools: [{ name: 'glob', state: 'started' }],
      waitsFor: 'an approval',
    });
  });

  it('reads what may have changed again after a pause, however old it is', () => {
    const newest = { ...own('answered').items[0], position: 100, messageId: 'newest' };
    const pausedIn = (state: string) =>
      resumeFrom(after(own(state), { type: 'items', items: [newest] })).after;
    expect(pausedIn('answered')).toBe(50);
    expect(pausedIn('taken')).toBe(0);
    expect(pausedIn('delivering')).toBe(0);
  });

  it('shows each sub-agent where it was spawned, whatever its state', () => {
    const child = { id: 'c', depth: 1, name: 'look', agentId: 'main', createdAt: 1, tokens: 0, cost: 0 };
    const shown = (state: Conversation) =>
      entriesInOrder(state).map((entry) => entry.message?.id ?? `${entry.child?.id}: ${entry.child?.state}`);
    const spawned: ServerFrame = { type: 'standing', hellos: 1, children: [{ ...child, state: 'queued' }] };
    const done: ServerFrame = { type: 'standing', hellos: 1, children: [{ ...child, state: 'done' }] };
    expect(shown(after(own('taken'), spawned))).toEqual(['own', 'c: queued']);
    expect(shown(after(own('answered'), spawned, stored, done))).toEqual(['own', 'c: done', 'p']);
    expect(shown(after(own('answered'), stored, { type: 'standing', hellos: 1 }))).toEqual(['own', 'p']);
  });

  it('shows nothing of a session that the conversation has left, but keeps unsent messages', () => {
    const [item] = stored.items;
    const other = { type: 'items', of: 't', items: [{ ...item, position: 1, messageId: 'q' }] } as const;
    const sending = reduce(after({ ...stored, of: 's' }), unsent);
    const moved = reduce(sending, { kind: 'frame', frame: other });
    expect(messagesInOrder(moved).map(({ id }) => id)).toEqual(['q', 'own']);
    expect(resumeFrom(moved)).toEqual({ after: 0, of: 't' });
  });

  it('removes a run that ended unseen', () => {
    const started: ServerFrame = { type: 'event', event: { kind: 'run', runId: 'r', state: 'started' } };
    expect(after(started, { type: 'standing', hellos: 1 }).run).toBeUndefined();
  });

  it('shows each message once and in order, whatever order frames arrive in', () => {
    const accepted = { type: 'ack', id: 'own', state: 'accepted' } as const;
    const frames = [accepted, own('answered'), part, stored].map(
      (frame) => ({ kind: 'frame', frame }) as const,
    );
    const happenings: ConversationInput[] = [unsent, ...frames];
    const order = fc
      .tuple(
        fc.shuffledSubarray(happenings, { minLength: 5 }),
        fc.array(fc.constantFrom(...happenings.slice(1))),
      )
      .map(([all, again]) => [...all, ...again]);
    holds(
      fc.property(order, (inputs) => {
        const state = inputs.reduce(reduce, emptyConversation);
        expect(messagesInOrder(state).map(({ id, text }) => [id, text])).toEqual([
          ['own', 'hi'],
          ['p', 'hello'],
        ]);
      }),
      { interruptAfterTimeLimit: 1000, numRuns: 5000 },
    );
  });

  it("shows a late press the question's outcome once, in its place", () => {
    const pressed = (reason: string): ServerFrame => {
      const text = 'Already approved by Ann.';
      return { type: 'ack', id: 'press', state: 'pressed', reason, text };
    };
    const shown = (reason: string) =>
      messagesInOrder(after(own('answered'), pressed(reason), pressed(reason), stored)).map(
        ({ text }) => text,
      );
    for (const reason of ['late', 'foreign', 'unknown'])
      expect(shown(reason)).toEqual(['hi', 'Already approved by Ann.', 'hello']);
    // The message with the question is edited to show the decision.
    for (const reason of ['approved', 'denied']) expect(shown(reason)).toEqual(['hi', 'hello']);
  });

  it('shows the state of an own message from sending to its end', () => {
    const stateOf = (state: Conversation) => messagesInOrder(state)[0]?.state;
    let state = reduce(emptyConversation, unsent);
    expect(stateOf(state)).toBe('sending');
    state = reduce(state, { kind: 'frame', frame: { type: 'ack', id: 'own', state: 'accepted' } });
    expect(stateOf(state)).toBe('accepted');
    state = reduce(state, { kind: 'frame', frame: own('taken') });
    expect([stateOf(state), isWorking(state)]).toEqual(['taken', true]);
    state = reduce(state, { kind: 'frame', frame: own('answered') });
    expect([stateOf(state), isWorking(state)]).toEqual(['answered', false]);
  });

  it('keeps a command ahead of its answer and of later messages', () => {
    const answer = {
      ...stored.items[0],
      messageId: 'answer',
      author: { kind: 'notice' },
      position: 2,
    } as const;
    const later = { ...stored.items[0], messageId: 'later', position: 3 } as const;
    const begun = reduce(after(own('answered')), {
      kind: 'unsent',
      frame: { id: 'command', text: '/help' },
      at: 2,
    });
    const frames: readonly ServerFrame[] = [
      { type: 'ack', id: 'command', state: 'command', reason: 'help' },
      { type: 'items', items: [answer] },
      { type: 'items', items: [later] },
    ];
    const ended = frames.reduce((state, frame) => reduce(state, { kind: 'frame', frame }), begun);
    expect(messagesInOrder(ended).map(({ id }) => id)).toEqual(['own', 'command', 'answer', 'later']);
  });

  it('keeps a message without a position where it was sent, even on a page just opened', () => {
    const later = { ...stored, items: [{ ...stored.items[0], messageId: 'later', position: 3 }] };
    const left = { kind: 'unsent', frame: { id: 'left', text: '?' }, at: 2 } as const;
    const told = (frame: ServerFrame) => ({ kind: 'frame', frame }) as const;
    const shown = (...inputs: readonly ConversationInput[]) =>
      messagesInOrder(inputs.reduce(reduce, emptyConversation)).map(({ id }) => id);
    const ends: readonly ServerFrame[] = [
      ...['command', 'refused', 'ignored', 'duplicate'].map(
        (state) => ({ type: 'ack', id: 'left', state }) as const,
      ),
      { type: 'problem', id: 'left', code: 'too_long', message: 'too long', retry: false },
    ];
    for (const end of ends) {
      const order = ['own', 'left', 'later'];
      expect(shown(told(own('answered')), left, told(end), told(later))).toEqual(order);
      expect(shown(left, told(end), told(own('answered')), told(later))).toEqual(order);
    }
  });

  it('replaces the preview by the answer', () => {
    const preview: ServerFrame = { type: 'preview', text: 'hel', spans: [] };
    expect(after(preview).preview).toEqual({ text: 'hel', spans: [] });
    expect(after(preview, part).preview).toBeUndefined();
    expect(after(preview, stored).preview).toBeUndefined();
  });

  it('removes the preview of an answer that was never sent', () => {
    const ended: ServerFrame = { type: 'event', event: { kind: 'run', runId: 'r', state: 'ended' } };
    const state = after({ type: 'preview', text: 'NO', spans: [] }, ended);
    expect(reduce(state, { kind: 'preview-settled' }).preview).toBeUndefined();
  });

  it('removes what a run has written at its end, though it comes again behind the answer', () => {
    const told = (event: FeedEvent): FeedFrame => ({ type: 'event', event });
    const text = (runId: string) => told({ kind: 'text', runId, of: 'chat', at: 0, text: 'hello' });
    const ended = told({ kind: 'run', runId: 'r', state: 'ended' });
    expect(after(text('r'), stored, text('r')).preview?.text).toBe('hello');
    expect(after(text('r'), stored, text('r'), ended).preview).toBeUndefined();
    expect(after(text('r'), stored, text('next'), ended).preview?.text).toBe('hello');
    const draft = { runId: 'r', assistant: 'hello', reasoning: '', chat: 'hello' };
    const snapshot: FeedFrame = { type: 'snapshot', id: '1', of: 'one', after: 0, items: [], draft };
    expect(after(snapshot, ended).preview).toBeUndefined();
  });

  it('shows what a run waits for until it continues', () => {
    const parked: ServerFrame = {
      type: 'event',
      event: { kind: 'parked', runId: 'r', reason: 'an approval' },
    };
    const started: ServerFrame = { type: 'event', event: { kind: 'run', runId: 'r', state: 'started' } };
    expect(after(started, parked).run?.waitsFor).toBe('an approval');
    expect(after(started, parked, started).run?.waitsFor).toBeUndefined();
  });

  it('keeps a run although an earlier one ends late', () => {
    const run = (runId: string, state: 'started' | 'ended'): ServerFrame => ({
      type: 'event',
      event: { kind: 'run', runId, state },
    });
    expect(after(run('a', 'started'), run('b', 'started'), run('a', 'ended')).run?.id).toBe('b');
    expect(after(run('a', 'started'), run('a', 'ended')).run).toBeUndefined();
  });

  it('shows the output of a call until that ends, and how far a summary is', () => {
    const told = (event: ClientEvent): ServerFrame => ({ type: 'event', event });
    const call = { runId: 'r', callId: 'c', name: 'build' };
    const started = [
      told({ kind: 'compaction', runId: 'r', state: 'started' }),
      told({ kind: 'compaction', runId: 'r', state: 'started', progress: 0.5 }),
      told({ kind: 'tool', ...call, state: 'started' }),
      told({ kind: 'output', runId: 'r', callId: 'c', text: 'step 1' }),
    ];
    const summary = 'Parley is summarizing earlier messages';
    expect(after(...started).run?.tools).toMatchObject([{ state: 'started', output: 'step 1' }]);
    expect(notesOf(after(...started))).toEqual([{ kind: 'summary', text: summary, progress: 0.5 }]);
    const ended = [
      told({ kind: 'tool', ...call, state: 'done' }),
      told({ kind: 'output', runId: 'r', callId: 'c', text: 'too late' }),
      told({ kind: 'compaction', runId: 'r', state: 'done' }),
    ];
    expect(after(...started, ...ended).run?.tools).toEqual([{ callId: 'c', name: 'build', state: 'done' }]);
    expect(notesOf(after(...started, ...ended))).toEqual([
      { kind: 'summary', text: 'Parley has summarized earlier messages' },
    ]);
  });
});

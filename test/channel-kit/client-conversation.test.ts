import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ConversationState,
  newConversation,
  readLimit,
  stepConversation,
} from '#channel-kit/client-conversation.ts';
import type { TimelineItem } from '#contracts/timeline.ts';
import { budget, holds } from '../support/holds.ts';

const frame = (value: unknown) => ({ kind: 'frame', text: JSON.stringify(value) }) as const;
const opened = () => stepConversation(newConversation, frame({ type: 'hello' })).state;
const itemAt = (position: number, state = 'answered'): TimelineItem => ({
  position,
  at: 0,
  author: { kind: 'person', name: 'you' },
  messageId: `m${position}`,
  channel: 'x',
  text: 't',
  state,
});

describe('a client conversation', () => {
  it("watches and reads from the client's position on hello", () => {
    const { actions } = stepConversation(newConversation, frame({ type: 'hello', after: 7 }));
    expect(actions).toEqual([
      { kind: 'watch', conversation: 'main' },
      { kind: 'read', after: 7 },
    ]);
  });

  it('accepts nothing before hello', () => {
    const { actions } = stepConversation(newConversation, frame({ type: 'stop', id: randomUUID() }));
    expect(actions).toMatchObject([{ kind: 'reply', frame: { type: 'problem', code: 'hello_first' } }]);
  });

  it('says which message is too long, so that it is not sent again', () => {
    const id = randomUUID();
    const { actions } = stepConversation(opened(), frame({ type: 'send', id, text: 'x'.repeat(32_001) }));
    expect(actions).toMatchObject([{ frame: { type: 'problem', code: 'too_long', id, retry: false } }]);
  });

  it('replaces characters that a database cannot store', () => {
    const { actions } = stepConversation(opened(), {
      kind: 'frame',
      text: `{"type":"send","id":"${randomUUID()}","text":"a\\u0000b\\ud800c"}`,
    });
    expect(actions).toMatchObject([{ kind: 'accept', frame: { text: 'a\ufffdb\ufffdc' } }]);
  });

  it('reads again from the oldest item that is still open', () => {
    const read = stepConversation(opened(), {
      kind: 'items',
      of: 's',
      items: [itemAt(1), itemAt(2, 'taken'), itemAt(3)],
      standing: {},
    });
    const changed = stepConversation(read.state, { kind: 'event', event: { kind: 'changed' } });
    expect(changed.actions).toEqual([{ kind: 'read', after: 1 }]);
    const ended = stepConversation(changed.state, {
      kind: 'items',
      of: 's',
      items: [itemAt(2), itemAt(3)],
      standing: {},
    });
    const later = stepConversation(ended.state, { kind: 'event', event: { kind: 'changed' } });
    expect(later.actions).toEqual([{ kind: 'read', after: 3 }]);
  });

  it('sends the stored activity after the last page, unless it is out of date', () => {
    const standing = { run: { runId: 'r', tools: [] } };
    const told = stepConversation(opened(), { kind: 'items', of: 's', items: [itemAt(1)], standing });
    const stands = { type: 'standing', hellos: 1, ...standing };
    expect(told.actions.at(-1)).toEqual({ kind: 'reply', frame: stands });
    const ended = { kind: 'event', event: { kind: 'run', runId: 'r', state: 'ended' } } as const;
    const overtaken = stepConversation(opened(), ended);
    const late = stepConversation(overtaken.state, { kind: 'items', of: 's', items: [itemAt(1)], standing });
    expect(late.actions.map((action) => action.kind)).toEqual(['reply', 'read']);
  });

  it('says which hello an answer is for and reads again for a repeated one', () => {
    const hello = frame({ type: 'hello' });
    const read = { kind: 'items', of: 's', items: [], standing: {} } as const;
    const again = stepConversation(opened(), hello);
    const early = stepConversation(again.state, read);
    expect(early.actions).toEqual([
      { kind: 'reply', frame: { type: 'items', of: 's', items: [] } },
      { kind: 'read' },
    ]);
    const late = stepConversation(early.state, read);
    expect(late.actions.at(-1)).toEqual({ kind: 'reply', frame: { type: 'standing', hellos: 2 } });
  });

  it('starts over when its conversation leads to another session', () => {
    const read = (of: string, ...items: readonly TimelineItem[]) =>
      ({ kind: 'items', of, items, standing: {} }) as const;
    const anew = [{ kind: 'watch', conversation: 'main' }, { kind: 'read' }];
    const before = stepConversation(opened(), read('s', itemAt(8, 'taken'), itemAt(9)));
    const moved = stepConversation(before.state, read('t', itemAt(10)));
    expect(moved.actions).toEqual(anew);
    const { actions } = stepConversation(moved.state, read('t', itemAt(1)));
    expect(actions[0]).toEqual({ kind: 'reply', frame: { type: 'items', of: 't', items: [itemAt(1)] } });
    const back = stepConversation(newConversation, frame({ type: 'hello', after: 9, of: 's' }));
    expect(stepConversation(back.state, read('t')).actions).toEqual(anew);
  });

  it('reads the activity once more if a tool starts or ends during a read', () => {
    const tool = { kind: 'tool', runId: 'r', callId: 'c', name: 'glob', state: 'started' } as const;
    const told = stepConversation(opened(), { kind: 'event', event: tool });
    expect(told.actions).toEqual([{ kind: 'reply', frame: { type: 'event', event: tool } }]);
    const items = { kind: 'items', of: 's', items: [], standing: {} } as const;
    const late = stepConversation(told.state, items);
    expect(late.actions.map(({ kind }) => kind)).toEqual(['reply', 'read']);
    const idle = stepConversation(late.state, items).state;
    expect(stepConversation(idle, { kind: 'event', event: tool }).actions).toEqual(told.actions);
  });

  it('forwards kinds of events that 0.2.0 lacks only to a client that asked for them', () => {
    const output = { kind: 'output', runId: 'r', callId: 'c', text: 'so far' } as const;
    const started = { kind: 'run', runId: 'r', state: 'started' } as const;
    const forwarded = (hello: object) => {
      const { state } = stepConversation(newConversation, frame({ type: 'hello', ...hello }));
      const steps = [started, output].map((event) => stepConversation(state, { kind: 'event', event }));
      return steps.flatMap(({ actions }) => actions.filter(({ kind }) => kind === 'reply'));
    };
    const told = (event: object) => ({ kind: 'reply', frame: { type: 'event', event } });
    expect(forwarded({})).toEqual([told(started)]);
    expect(forwarded({ events: ['output'] })).toEqual([told(started), told(output)]);
  });

  it('shows a client every item, whatever the order of changes and reads', () => {
    const moves = fc.array(fc.constantFrom('say', 'many', 'end', 'change', 'answer'), { maxLength: 60 });
    holds(
      fc.property(moves, (sequence) => {
        const gateway = new ModelGateway();
        for (const move of sequence) gateway.make(move);
        gateway.settle();
        expect(gateway.shown()).toEqual(gateway.stored());
      }),
      { interruptAfterTimeLimit: 1500, numRuns: 5000 },
    );
  });

  it('survives any frame without changing a prototype', { timeout: 1_200_000 }, () => {
    const anyText = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .record({
          type: fc.constantFrom('hello', 'send', 'stop', 'edit', 'delete'),
          id: fc.anything(),
          text: fc.anything(),
        })
        .map((value) => {
          try {
            return JSON.stringify(value) ?? '';
          } catch {
            return '';
          }
        }),
      fc.constantFrom(
        '{"__proto__":{"polluted":1},"type":"hello"}',
        '{"type":"hello","constructor":{"prototype":{"polluted":1}}}',
      ),
      fc.integer({ min: 1, max: 60_000 }).map((depth) => '['.repeat(depth)),
    );
    holds(
      fc.property(anyText, (text) => {
        const step = stepConversation(opened(), { kind: 'frame', text });
        for (const action of step.actions)
          expect(['reply', 'read', 'accept', 'watch']).toContain(action.kind);
        expect(Reflect.get({}, 'polluted')).toBeUndefined();
      }),
      budget(1_000_000, 2000),
    );
  });
});

/** A timeline and one client that performs the actions; reads are answered when the model says so. */
class ModelGateway {
  #items: TimelineItem[] = [];
  readonly #client = new Map<string, string>();
  readonly #reads: { readonly after?: number }[] = [];
  #state: ConversationState = newConversation;

  constructor() {
    this.#step(frame({ type: 'hello' }));
  }

  make(move: string): void {
    if (move === 'say') this.#say(1);
    if (move === 'many') this.#say(readLimit + 3);
    if (move === 'end') this.#items = this.#items.map((item) => ({ ...item, state: 'answered' }));
    if (move === 'answer') this.#answerRead();
    else this.#step({ kind: 'event', event: { kind: 'changed' } });
  }

  settle(): void {
    while (this.#reads.length > 0) this.#answerRead();
  }

  shown = () => Object.fromEntries(this.#client);
  stored = () => Object.fromEntries(this.#items.map((item) => [item.messageId, item.state]));

  #say(count: number): void {
    for (let i = 0; i < count; i += 1) this.#items.push(itemAt(this.#items.length + 1, 'waiting'));
  }

  #answerRead(): void {
    const read = this.#reads.shift();
    if (read === undefined) return;
    const { after = 0 } = read;
    this.#step({
      kind: 'items',
      of: 's',
      items: this.#items.filter((item) => item.position > after).slice(0, readLimit),
      standing: {},
    });
  }

  #step(input: Parameters<typeof stepConversation>[1]): void {
    const { state, actions } = stepConversation(this.#state, input);
    this.#state = state;
    for (const action of actions) {
      if (action.kind === 'read') this.#reads.push(action);
      if (action.kind === 'reply' && action.frame.type === 'items') {
        for (const item of action.frame.items) this.#client.set(item.messageId, item.state);
      }
    }
  }
}

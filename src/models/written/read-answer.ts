/**
 * The stage between a provider and everybody else: reasoning and tool calls in a model's text become
 * reasoning and calls.
 *
 * A server may put the opening mark of the reasoning into the prompt, so that only the closing one arrives and the text
 * before it was reasoning all along. A model that may do so is held back: its text is passed on when the closing mark or
 * the end of the answer has decided what it was. Models known for separate reasoning, and those whose answers have been
 * seen without such a mark, are passed on as they write; if one of them does it anyway, its text is recalled.
 */
import type { ModelEvent, ModelRequest, ToolSpec } from '#contracts/model.ts';
import { bytesIn } from '../streamed-bytes.ts';
import type { WrittenCall } from './python-calls.ts';
import { TextReader, type Written } from './text-reader.ts';

/** The way in which a model at a server marks its reasoning, as far as it has been seen; shared by its calls. */
export type ReasoningHabit = { kind: 'unknown' | 'marked' | 'unmarked' };

/** Families whose servers separate the reasoning. */
const separateFamilies = /(?:^|\/)(?:claude|gpt-\d|chatgpt|o[134](?:-|$)|gemini|demo)/;

/** Returns the habit that a model's name suggests. */
export function createHabit(model: string): ReasoningHabit {
  return { kind: separateFamilies.test(model) ? 'marked' : 'unknown' };
}

type AnswerTerms = { readonly tools: readonly ToolSpec[]; readonly habit: ReasoningHabit };

/** Returns the events with reasoning and calls in their places. */
export async function* readWritten(
  events: AsyncIterable<ModelEvent>,
  { tools }: Pick<ModelRequest, 'tools'>,
  habit: ReasoningHabit,
): AsyncGenerator<ModelEvent> {
  const reader = new AnswerReader({ tools, habit });
  for await (const event of events) yield* reader.read(event);
}

/** Returns the text of a complete answer. */
export function textOfAnswer(whole: string, { tools, habit }: AnswerTerms): string {
  const reader = new TextReader(tools);
  let text = '';
  for (const each of [...reader.take(whole), ...reader.end()]) {
    if (each.kind === 'text') text += each.text;
    if (each.kind !== 'recall') continue;
    habit.kind = 'unmarked';
    text = '';
  }
  return text;
}

class AnswerReader {
  readonly #terms: AnswerTerms;
  readonly #text: TextReader;
  #isHolding: boolean;
  #held = '';
  #heldBytes = 0;
  #isOpen = false;
  #hasSaid = false;
  #hasRecalled = false;
  #isSeparate = false;
  #written: WrittenCall[] = [];
  /** Calls that the server itself has found, by id. */
  readonly #called = new Map<string, { readonly name: string; json: string }>();

  constructor(terms: AnswerTerms) {
    this.#terms = terms;
    this.#text = new TextReader(terms.tools);
    this.#isHolding = terms.habit.kind !== 'marked';
  }

  read(event: ModelEvent): readonly ModelEvent[] {
    switch (event.type) {
      case 'content_start':
      case 'content_stop':
        return [];
      case 'content_delta':
        return this.#progressed(
          event.text,
          this.#text.take(event.text).flatMap((each) => this.#place(each)),
        );
      case 'thinking_delta':
        return [
          ...(event.thinking === '' ? [] : this.#progressed('', this.#separate())),
          ...this.#close(),
          event,
        ];
      case 'tool_use_start':
        this.#called.set(event.id, { name: event.name, json: '' });
        return [...this.#progressed('', this.#flush()), ...this.#close(), event];
      case 'tool_use_delta': {
        const call = this.#called.get(event.id);
        if (call) call.json += event.json;
        return [event];
      }
      case 'complete':
        return this.#complete(event);
      default:
        return [event];
    }
  }

  /** Reports what is held back of the text, whenever that changes. */
  #progressed(text: string, events: readonly ModelEvent[]): readonly ModelEvent[] {
    const before = this.#heldBytes;
    this.#heldBytes += Buffer.byteLength(text);
    for (const event of events) this.#heldBytes -= bytesIn(event);
    if (this.#heldBytes === before) return events;
    return [...events, { type: 'progress', heldBytes: this.#heldBytes }];
  }

  #place(each: Written): readonly ModelEvent[] {
    switch (each.kind) {
      case 'text':
        return this.#isHolding ? this.#hold(each.text) : this.#say(each.text);
      case 'thinking':
        this.#isSeparate = true;
        return [...this.#release(), ...this.#close(), { type: 'thinking_delta', thinking: each.thinking }];
      case 'call':
        this.#written.push({ name: each.name, input: each.input });
        return [];
      case 'recall':
        return this.#recall();
      default:
        return each satisfies never;
    }
  }

  #hold(text: string): readonly ModelEvent[] {
    this.#held += text;
    return [];
  }

  #say(text: string): readonly ModelEvent[] {
    if (text === '') return [];
    const opening: readonly ModelEvent[] = this.#isOpen ? [] : [{ type: 'content_start' }];
    this.#isOpen = true;
    this.#hasSaid = true;
    return [...opening, { type: 'content_delta', text }];
  }

  /** The reasoning is marked, so the text isn't part of it. */
  #separate(): readonly ModelEvent[] {
    this.#isSeparate = true;
    return this.#flush();
  }

  #flush(): readonly ModelEvent[] {
    const rest = this.#text.flush().flatMap((each) => this.#place(each));
    if (!this.#isSeparate && this.#isHolding && this.#terms.habit.kind === 'unmarked') return rest;
    return [...rest, ...this.#release()];
  }

  #release(): readonly ModelEvent[] {
    this.#isHolding = false;
    const held = this.#held;
    this.#held = '';
    return this.#say(held);
  }

  #recall(): readonly ModelEvent[] {
    const held = this.#held;
    const said = this.#hasSaid;
    this.#held = '';
    this.#hasSaid = false;
    this.#isHolding = false;
    this.#hasRecalled = true;
    this.#written = [];
    this.#terms.habit.kind = 'unmarked';
    return [
      ...this.#close(),
      ...(said ? [{ type: 'content_recall' } as const] : []),
      ...(held === '' ? [] : [{ type: 'thinking_delta', thinking: held } as const]),
    ];
  }

  #close(): readonly ModelEvent[] {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    return wasOpen ? [{ type: 'content_stop' }] : [];
  }

  #complete(event: Extract<ModelEvent, { type: 'complete' }>): readonly ModelEvent[] {
    const rest = this.#text.end().flatMap((each) => this.#place(each));
    const { habit } = this.#terms;
    // It ran out of room, or called a tool, while it was still thinking.
    const wasThinking = event.finish === 'max_tokens' || this.#called.size > 0;
    const isReasoning = habit.kind === 'unmarked' && wasThinking && !this.#hasRecalled;
    const held = this.#held;
    if (this.#isHolding && isReasoning && held !== '') {
      this.#held = '';
      rest.push({ type: 'thinking_delta', thinking: held });
    }
    const text = [...rest, ...this.#release(), ...this.#close()];
    const isDecisive = event.finish === 'end_turn' && (this.#hasSaid || this.#isSeparate);
    if (habit.kind === 'unknown' && isDecisive) habit.kind = 'marked';
    const calls = this.#calls();
    const finish = calls.length > 0 && event.finish === 'end_turn' ? 'tool_use' : event.finish;
    return [...text, ...calls, { ...event, finish }];
  }

  /** Returns the calls in the text, without those that the server has found, too. None if no tool was offered. */
  #calls(): readonly ModelEvent[] {
    if (this.#terms.tools.length === 0) return [];
    const known = new Set([...this.#called.values()].map(({ name, json }) => `${name}\n${sameJson(json)}`));
    return this.#written
      .filter(({ name, input }) => !known.has(`${name}\n${sameJson(input)}`))
      .flatMap(({ name, input }, index): readonly ModelEvent[] => {
        const id = `written_${index + 1}`;
        return [
          { type: 'tool_use_start', id, name },
          { type: 'tool_use_delta', id, json: input },
          { type: 'tool_use_stop', id },
        ];
      });
  }
}

function sameJson(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json.trim();
  }
}

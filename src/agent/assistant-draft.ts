import { cleanText } from '#channel-kit/clean-text.ts';
import type { TranscriptId } from '#contracts/ids.ts';
import type { AgentMessage, FinishReason, MessagePart, Source, ToolCallData } from '#contracts/message.ts';
import type { ModelEvent } from '#contracts/model.ts';
import { InputRoom, maxInputLength, refused } from './call-input.ts';
import { UnusedIds } from './call-pairs.ts';

/** When the message ended, ms since the epoch, and the model that wrote it. */
export type FinishStamp = {
  readonly time: number;
  readonly model?: string;
  readonly sources?: readonly Source[];
};

/**
 * Limit on one answer's text, thinking and arguments together, UTF-16 units: four times what the largest models write.
 */
const maxLength = 2_000_000;
/** Limits on the blocks and the calls of one answer. */
const maxParts = 2_000;
const maxCalls = 128;
const maxNameLength = 128;

/**
 * An assistant message while the model writes it. `takenCallIds` contains the transcript's call ids so far, and this
 * message's ids are added to it: some providers count from zero in every answer, but an id must be unique within
 * the session.
 */
export class AssistantDraft {
  readonly #id: TranscriptId;
  readonly #createdAt: number;
  readonly #callIds: UnusedIds;
  readonly #parts: MessagePart[] = [];
  /** Maps the provider's id of each call to the index of its part. */
  readonly #callIndex = new Map<string, number>();
  #isTextOpen = false;
  #length = 0;
  #callCount = 0;

  constructor(id: TranscriptId, createdAt: number, takenCallIds: Set<string>) {
    this.#id = id;
    this.#createdAt = createdAt;
    this.#callIds = new UnusedIds(takenCallIds);
  }

  /** True until the model has written something. */
  get isUntouched(): boolean {
    return this.#parts.length === 0;
  }

  /** True until the model has written something other than its thinking. */
  get isHidden(): boolean {
    return this.#parts.every(({ type }) => type === 'reasoning');
  }

  /** True once the answer has reached its limits; anything further is cut off. */
  get isFull(): boolean {
    return this.#length > maxLength || this.#parts.length > maxParts;
  }

  /** Adds the event's content to the message; events without content change nothing. */
  write(event: ModelEvent): void {
    if (event.type === 'progress') return;
    if (event.type !== 'content_delta') this.#isTextOpen = false;
    switch (event.type) {
      case 'content_delta':
        this.#writeText(this.#fitted(event.text));
        break;
      case 'thinking_delta':
        this.#writeThinking(this.#fitted(event.thinking), event.signature);
        break;
      case 'tool_use_start':
        this.#startCall(event.id, event.name);
        break;
      case 'tool_use_delta':
        this.#length += event.json.length;
        // One delta past the limit, which marks the input as too long.
        this.#amendCall(event.id, (call) =>
          call.input.length > maxInputLength ? call : { ...call, input: call.input + event.json },
        );
        break;
      case 'tool_use_stop':
        this.#stopCall(event);
        break;
      case 'content_recall':
        this.#recallText();
        break;
      case 'content_start':
      case 'content_stop':
      case 'warning':
      case 'complete':
      case 'error':
        break;
      default:
        event satisfies never;
    }
  }

  /** Returns the message so far. It has no finish part, so it doesn't count yet. */
  snapshot(): AgentMessage {
    return this.#messageOf([...this.#parts]);
  }

  /** Returns the message with its finish part, without the characters that databases reject. */
  finish(reason: FinishReason, { time, model, sources }: FinishStamp): AgentMessage {
    const room = new InputRoom();
    const message = this.#messageOf([
      ...this.#parts.map((part) => cleanPart(part, room)),
      { type: 'finish', data: { reason, time, ...(sources && { sources }) } },
    ]);
    return model === undefined ? message : { ...message, model };
  }

  /** Cuts the text to the room left plus one unit, which marks it as too long. */
  #fitted(text: string): string {
    return text.slice(0, Math.max(0, maxLength + 1 - this.#length));
  }

  #writeText(text: string): void {
    this.#length += text.length;
    const last = this.#parts.at(-1);
    if (this.#isTextOpen && last?.type === 'text') {
      this.#parts[this.#parts.length - 1] = { type: 'text', data: { text: last.data.text + text } };
    } else if (text !== '') {
      this.#parts.push({ type: 'text', data: { text } });
    }
    this.#isTextOpen = true;
  }

  #recallText(): void {
    for (const [index, part] of this.#parts.entries())
      if (part.type === 'text')
        this.#parts[index] = { type: 'reasoning', data: { thinking: part.data.text } };
  }

  /** A signature can't be shortened: if it doesn't fit, it is omitted and the answer ends there. */
  #fittedSignature(signature: string | undefined): string | undefined {
    this.#length += signature?.length ?? 0;
    return this.#length > maxLength ? undefined : signature;
  }

  /** Thinking is appended to its part until a signature closes that part. */
  #writeThinking(thinking: string, given: string | undefined): void {
    this.#length += thinking.length;
    const signature = this.#fittedSignature(given);
    const last = this.#parts.at(-1);
    const isOpen = last?.type === 'reasoning' && last.data.signature === undefined;
    const data = { thinking: (isOpen ? last.data.thinking : '') + thinking };
    if (isOpen) this.#parts.pop();
    this.#parts.push({ type: 'reasoning', data: signature === undefined ? data : { ...data, signature } });
  }

  #startCall(providerId: string, name: string): void {
    this.#callCount += 1;
    // The first excess call represents all later ones, which are neither kept nor run.
    if (this.#callCount > maxCalls + 1) return;
    const id = this.#callIds.take(cleanText(providerId.slice(0, maxNameLength)) || 'call');
    const named = { id, name: cleanText(name.slice(0, maxNameLength)), input: '', finished: false };
    const isOneTooMany = this.#callCount > maxCalls;
    if (!isOneTooMany) this.#callIndex.set(providerId, this.#parts.length);
    const data = isOneTooMany
      ? { ...refused(named, `an answer may make ${maxCalls} calls`), finished: true }
      : named;
    this.#parts.push({ type: 'tool_call', data });
  }

  #stopCall({ id, signature: given }: Extract<ModelEvent, { type: 'tool_use_stop' }>): void {
    const signature = this.#fittedSignature(given);
    this.#amendCall(id, (call) => ({
      ...call,
      finished: true,
      ...(signature !== undefined && { signature }),
    }));
  }

  #amendCall(providerId: string, amend: (call: ToolCallData) => ToolCallData): void {
    const index = this.#callIndex.get(providerId);
    const part = index === undefined ? undefined : this.#parts[index];
    if (index === undefined || part?.type !== 'tool_call') return;
    this.#parts[index] = { type: 'tool_call', data: amend(part.data) };
  }

  #messageOf(parts: readonly MessagePart[]): AgentMessage {
    return { id: this.#id, role: 'assistant', parts, createdAt: this.#createdAt };
  }
}

/** Only complete parts are cleaned, because a surrogate pair may be split across two deltas. */
function cleanPart(part: MessagePart, room: InputRoom): MessagePart {
  switch (part.type) {
    case 'text':
      return { type: 'text', data: { text: cleanText(part.data.text) } };
    case 'reasoning':
      return { type: 'reasoning', data: { ...part.data, thinking: cleanText(part.data.thinking) } };
    case 'tool_call':
      return { type: 'tool_call', data: room.bound(part.data) };
    default:
      return part;
  }
}

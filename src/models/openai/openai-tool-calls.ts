/**
 * Tool calls of a stream. Servers differ: some number the calls and name each once; some give all of them number 0 but
 * distinct ids; some send no id, one id for all calls, or a new id with each piece; and some send the complete call in
 * one piece.
 */
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { jsonProblem, type ShapeLimits } from '#channel-kit/json-guard.ts';
import type { ModelEvent } from '#contracts/model.ts';
import { isSameModel } from './openai-models.ts';

export type ToolDelta = Partial<ChatCompletionChunk.Choice.Delta.ToolCall> & {
  readonly extra_content?: unknown;
};

type OpenCall = { readonly wireId: string; readonly id: string; readonly json: JsonEnd; signature?: string };

/** Far more than an answer may make; the draft reports the first excess call. */
const maxCalls = 1_000;

export class ToolCallReader {
  readonly #model: string;
  readonly #open = new Map<number, OpenCall>();
  readonly #ids = new Set<string>();
  #count = 0;

  /** `model`: the requested one; answers may name it differently. */
  constructor(model: string) {
    this.#model = model;
  }

  get count(): number {
    return this.#count;
  }

  read(delta: ToolDelta): readonly ModelEvent[] {
    const index = Number.isInteger(Number(delta.index ?? 0)) ? Number(delta.index ?? 0) : 0;
    const name = textOf(delta.function?.name);
    const wireId = textOf(delta.id);
    const json = argumentsIn(delta);
    const known = this.#open.get(index);
    const events: ModelEvent[] = [];
    let call = known;
    if (known === undefined || isAnother(known, wireId, name)) {
      // Arguments of a call that was never named can't be assigned to a tool.
      if (name === '' || this.#count >= maxCalls) return [];
      events.push(...this.#end(index));
      call = this.#begin(index, wireId);
      events.push({ type: 'tool_use_start', id: call.id, name });
    }
    const signature = signatureFor(delta.extra_content, this.#model);
    if (call !== undefined && signature !== undefined) call.signature = signature;
    if (call !== undefined && json !== '') {
      call.json.add(json);
      events.push({ type: 'tool_use_delta', id: call.id, json });
    }
    return events;
  }

  /** Ends all open calls. */
  end(): readonly ModelEvent[] {
    return [...this.#open.keys()].flatMap((index) => this.#end(index));
  }

  #begin(index: number, wireId: string): OpenCall {
    this.#count += 1;
    const wanted = wireId || `call_${this.#count}`;
    const id = this.#ids.has(wanted) ? `${wanted}_${this.#count}` : wanted;
    this.#ids.add(id);
    const call = { wireId, id, json: new JsonEnd() };
    this.#open.set(index, call);
    return call;
  }

  #end(index: number): readonly ModelEvent[] {
    const call = this.#open.get(index);
    this.#open.delete(index);
    if (call === undefined) return [];
    const { id, json, signature } = call;
    const stop = { type: 'tool_use_stop', id, ...(signature !== undefined && { signature }) } as const;
    return json.isBlank ? [{ type: 'tool_use_delta', id, json: '{}' }, stop] : [stop];
  }
}

/** Prefix of a signature that contains a call's `extra_content`, without which Gemini refuses the call. */
const EXTRA_CONTENT = 'extra_content:';
/** Longer signatures aren't kept, UTF-16 units; Gemini's have a few thousand. */
const maxSignatureLength = 100_000;
const extraShape: ShapeLimits = { depth: 16, values: 1_000 };

/**
 * Replaces the signature that Gemini requires, for a call made by another model.
 * Source: ai.google.dev/gemini-api/docs/thought-signatures, read 2026-11.
 */
export const unsigned = { google: { thought_signature: 'skip_thought_signature_validator' } };

function signatureFor(extra: unknown, model: string): string | undefined {
  if (typeof extra !== 'object' || extra === null || jsonProblem(extra, extraShape)) return undefined;
  const signature = `${EXTRA_CONTENT}${JSON.stringify({ model, extra })}`;
  return signature.length > maxSignatureLength ? undefined : signature;
}

/** Returns the `extra_content` of a call made by the same model; undefined if it has none. */
export function extraContentIn(signature: string | undefined, model: string): unknown {
  if (!signature?.startsWith(EXTRA_CONTENT)) return undefined;
  // Written above; the store keeps it unchanged.
  const signed = JSON.parse(signature.slice(EXTRA_CONTENT.length)) as { model: string; extra: unknown };
  return isSameModel(signed.model, model) ? signed.extra : undefined;
}

/** Detects a new call: a name with a different id or, without ids, a name after complete arguments. */
function isAnother(known: OpenCall, wireId: string, name: string): boolean {
  if (name === '') return false;
  if (wireId !== '') return wireId !== known.wireId;
  return known.wireId === '' && known.json.isWhole;
}

/** Detects where a JSON value that arrives in pieces ends. Linear: each piece is read once. */
class JsonEnd {
  isBlank = true;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** True once there is a value with nothing left open. */
  get isWhole(): boolean {
    return !this.isBlank && this.#depth <= 0 && !this.#isInString;
  }

  add(piece: string): void {
    this.isBlank &&= piece.trim() === '';
    for (let at = 0; at < piece.length; at += 1) this.#read(piece[at]);
  }

  #read(sign: string | undefined): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (this.#isInString && sign === '\\') this.#isEscaped = true;
    else if (sign === '"') this.#isInString = !this.#isInString;
    else if (this.#isInString) return;
    else if (sign === '{' || sign === '[') this.#depth += 1;
    else if (sign === '}' || sign === ']') this.#depth -= 1;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Returns the arguments as JSON; some servers send them as an object. */
function argumentsIn({ function: called }: ToolDelta): string {
  const value: unknown = called?.arguments;
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

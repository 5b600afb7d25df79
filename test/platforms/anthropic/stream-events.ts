import type { PromptUsage } from './prompt-cache.ts';
import { signThinking } from './signature.ts';
import type { ScriptedCall, Turn } from './turn.ts';
import type { WireBody, WireUsage } from './wire.ts';

/** One server-sent event, as text. Pacing, gates and faults count chunks. */
export type StreamStep = { readonly text: string; readonly isChunk: boolean };

export type Answer = {
  readonly id: string;
  readonly model: string;
  readonly content: readonly AnswerBlock[];
  readonly stopReason: string;
  readonly usage: WireUsage;
  readonly diagnostics: object | null;
};

export type AnswerBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'text'; readonly chunks: readonly string[] }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly json: string };

/** Turns a turn into the answer to one request. `newId` returns ids that no other answer has. */
export function answerOf(
  turn: Turn,
  request: { readonly body: WireBody; readonly prompt: PromptUsage; newId(prefix: string): string },
): Answer {
  const content: AnswerBlock[] = [];
  if (turn.thinking !== undefined) {
    const signature = signThinking(turn.thinking, request.body);
    content.push({ type: 'thinking', thinking: turn.thinking, signature });
  }
  const chunks = turn.chunks ?? piecesOf(turn.text ?? '', 16);
  if (chunks.length > 0) content.push({ type: 'text', chunks });
  const calls = turn.toolCalls ?? [];
  content.push(...calls.map((call) => callBlock(call, request.newId)));
  const output_tokens = Math.max(1, Math.ceil(JSON.stringify(content).length / 4));
  return {
    id: request.newId('msg'),
    model: request.body.model,
    content,
    stopReason: turn.stopReason ?? (calls.length > 0 ? 'tool_use' : 'end_turn'),
    usage: { ...request.prompt, output_tokens, ...turn.usage },
    diagnostics: request.body.diagnostics ? diagnosticsOf(turn) : null,
  };
}

function diagnosticsOf({ cacheMiss }: Turn): object | null {
  if (cacheMiss === undefined) return null;
  const reason = { type: cacheMiss, cache_missed_input_tokens: 2_000 };
  return { cache_miss_reason: cacheMiss === 'pending' ? null : reason };
}

function callBlock(call: ScriptedCall, newId: (prefix: string) => string): AnswerBlock {
  const json = call.inputJson ?? JSON.stringify(call.input ?? {});
  return { type: 'tool_use', id: call.id ?? newId('toolu'), name: call.name, json };
}

/** Returns the complete stream, from `message_start` to `message_stop`. */
export function streamOf(answer: Answer): readonly StreamStep[] {
  const steps = [event('message_start', { message: messageOf(answer, 1) }), event('ping', {})];
  for (const [index, block] of answer.content.entries()) {
    steps.push(event('content_block_start', { index, content_block: emptyBlock(block) }));
    for (const delta of deltasOf(block)) steps.push(event('content_block_delta', { index, delta }, true));
    steps.push(event('content_block_stop', { index }));
  }
  const delta = { stop_reason: answer.stopReason, stop_sequence: null, stop_details: null, container: null };
  const usage = { ...answer.usage, server_tool_use: null, output_tokens_details: null };
  steps.push(event('message_delta', { delta, usage }), event('message_stop', {}));
  return steps;
}

/** Returns the answer to a request without `stream`. */
export function messageJson(answer: Answer): string {
  const content = answer.content.map((block) => {
    if (block.type === 'text') return { type: 'text', text: block.chunks.join(''), citations: null };
    if (block.type === 'thinking') return block;
    return { type: 'tool_use', id: block.id, name: block.name, input: JSON.parse(block.json) };
  });
  return JSON.stringify({
    ...messageOf(answer, answer.usage.output_tokens),
    content,
    stop_reason: answer.stopReason,
  });
}

export function errorEvent(type: string): StreamStep {
  return event('error', { error: { type, message: 'Overloaded' } });
}

function messageOf(answer: Answer, outputTokens: number) {
  return {
    id: answer.id,
    type: 'message',
    role: 'assistant',
    model: answer.model,
    content: [],
    diagnostics: answer.diagnostics,
    stop_reason: null,
    stop_sequence: null,
    usage: { ...answer.usage, output_tokens: outputTokens, service_tier: 'standard' },
  };
}

function emptyBlock(block: AnswerBlock) {
  if (block.type === 'text') return { type: 'text', text: '', citations: null };
  if (block.type === 'thinking') return { type: 'thinking', thinking: '', signature: '' };
  return { type: 'tool_use', id: block.id, name: block.name, input: {} };
}

function deltasOf(block: AnswerBlock): readonly object[] {
  if (block.type === 'text') return block.chunks.map((text) => ({ type: 'text_delta', text }));
  if (block.type === 'tool_use') {
    return piecesOf(block.json, 7).map((partial_json) => ({ type: 'input_json_delta', partial_json }));
  }
  return [
    ...piecesOf(block.thinking, 16).map((thinking) => ({ type: 'thinking_delta', thinking })),
    { type: 'signature_delta', signature: block.signature },
  ];
}

function event(name: string, data: object, isChunk = false): StreamStep {
  return { text: `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`, isChunk };
}

/** Cuts by code points, so that no piece contains half a character. */
function piecesOf(text: string, size: number): readonly string[] {
  const points = Array.from(text);
  const pieces: string[] = [];
  for (let at = 0; at < points.length; at += size) pieces.push(points.slice(at, at + size).join(''));
  return pieces;
}

/**
 * Plays a reply into a response: in one write if nothing requires pacing, otherwise step by step with delays, gates and
 * faults at exact chunks.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorBody, errorTypeOf } from './refusal.ts';
import { type Answer, errorEvent, messageJson, type StreamStep, streamOf } from './stream-events.ts';
import type { Fault, Reply, Turn } from './turn.ts';

export type Stage = {
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly isStreaming: boolean;
  answer(turn: Turn): Answer;
};

export async function play(reply: Reply, stage: Stage): Promise<void> {
  const { response } = stage;
  if ('hang' in reply) return;
  if ('disconnect' in reply) {
    response.destroy();
    return;
  }
  if ('status' in reply) return sendError(reply, stage);
  if ('garbage' in reply) {
    response.writeHead(200, streamHeaders(stage));
    response.end(reply.garbage);
    return;
  }
  await playTurn(reply, stage);
}

export function sendError(fault: Extract<Fault, { status: number }>, stage: Stage): void {
  const type = fault.errorType ?? errorTypeOf(fault.status);
  const message = fault.message ?? `scripted ${fault.status}`;
  const body = JSON.parse(errorBody(type, message, stage.requestId));
  if (fault.errorCode !== undefined) body.error.details = { error_code: fault.errorCode };
  stage.response.writeHead(fault.status, {
    'content-type': 'application/json',
    'request-id': stage.requestId,
    ...(fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }),
  });
  stage.response.end(JSON.stringify(body));
}

type StreamFault = Extract<Fault, Turn>;

async function playTurn(turn: Turn | StreamFault, stage: Stage): Promise<void> {
  if (turn.delayMs !== undefined) await sleep(turn.delayMs);
  if (turn.hold !== undefined && turn.hold.afterChunks === undefined) await standAt(turn.hold.gate);
  if (stage.response.destroyed) return;
  const answer = stage.answer(turn);
  if (!stage.isStreaming) return sendWhole(turn, answer, stage);
  const steps = streamOf(answer);
  stage.response.writeHead(200, streamHeaders(stage));
  if (isPlain(turn)) {
    stage.response.end(steps.map((step) => step.text).join(''));
    return;
  }
  await playSteps(turn, steps, stage.response);
}

function sendWhole(turn: Turn | StreamFault, answer: Answer, stage: Stage): void {
  if ('silentAfter' in turn) return;
  if ('cutAfter' in turn || 'endAfter' in turn || 'midStreamError' in turn) {
    stage.response.destroy();
    return;
  }
  stage.response.writeHead(200, { 'content-type': 'application/json', 'request-id': stage.requestId });
  stage.response.end(messageJson(answer));
}

function isPlain(turn: Turn | StreamFault): boolean {
  return (
    turn.chunkDelayMs === undefined &&
    turn.hold?.afterChunks === undefined &&
    turn.linger === undefined &&
    stopOf(turn) === undefined
  );
}

/** Returns how the stream goes wrong, and after how many chunks. */
function stopOf(turn: Turn | StreamFault) {
  if ('cutAfter' in turn) return { after: turn.cutAfter, how: 'cut' as const };
  if ('endAfter' in turn) return { after: turn.endAfter, how: 'end' as const };
  if ('silentAfter' in turn) return { after: turn.silentAfter, how: 'silence' as const };
  if ('midStreamError' in turn) {
    return { after: turn.afterChunks ?? 0, how: 'error' as const, type: turn.midStreamError };
  }
  return undefined;
}

async function playSteps(
  turn: Turn | StreamFault,
  steps: readonly StreamStep[],
  response: ServerResponse,
): Promise<void> {
  const stop = stopOf(turn);
  let chunks = 0;
  for (const step of steps) {
    if (step.isChunk || step.text.startsWith('event: message_delta')) {
      if (turn.hold?.afterChunks === chunks) await standAt(turn.hold.gate);
      if (stop?.after === chunks) return goWrong(stop, response);
    }
    if (step.isChunk) {
      if (turn.chunkDelayMs !== undefined) await sleep(turn.chunkDelayMs);
      chunks += 1;
    }
    if (response.destroyed) return;
    response.write(step.text);
  }
  if (stop !== undefined)
    throw new Error(`the turn has ${chunks} chunks, the fault comes after ${stop.after}`);
  // The platform's last packet often arrives a little after `message_stop`.
  await (turn.linger ? standAt(turn.linger) : sleep(2));
  response.end();
}

async function goWrong(
  stop: NonNullable<ReturnType<typeof stopOf>>,
  response: ServerResponse,
): Promise<void> {
  if (stop.how === 'silence') return;
  if (stop.how === 'end') response.end();
  else if (stop.how === 'error') response.end(errorEvent(stop.type).text);
  // What was written must be sent before the cut, or the client would see nothing at all.
  else response.write(':\n', () => setImmediate(() => response.destroy()));
}

async function standAt(gate: { arrive(): void; readonly opened: Promise<void> }): Promise<void> {
  gate.arrive();
  await gate.opened;
}

function streamHeaders(stage: Stage): Record<string, string> {
  return {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    'request-id': stage.requestId,
  };
}

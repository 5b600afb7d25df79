// Fits a tool's result to the transcript: bounded, cleaned, and always present.

import { fitBytes } from '#channel-kit/clean-text.ts';
import { jsonProblem, type ShapeLimits } from '#channel-kit/json-guard.ts';
import type { AgentEvent } from '#contracts/agent-event.ts';
import type { TranscriptId } from '#contracts/ids.ts';
import {
  type AgentMessage,
  type MessagePart,
  neverStarted,
  skipped,
  type ToolCallData,
} from '#contracts/message.ts';
import type { TimelineStep } from '#contracts/timeline.ts';
import { maxResultBytes, type ToolOutput } from '#contracts/tool.ts';
import { cleanUntrusted, newDelimiter, wrapUntrusted } from '../texts/untrusted-text.ts';
import { type FitImage, fitImage } from './fit-image.ts';
import type { ToolResult } from './loop-config.ts';
import type { AbortReason } from './run-scope.ts';

const maxImages = 8;
/** Longest metadata, UTF-16 units of its JSON; fits the longest message that a tool can send. */
const maxMetadataLength = 256 * 1024;
/** Room for the note about images and for the lines around strangers' text, bytes. */
const enclosureBytes = 640;
/** At most this many images are checked. */
const maxChecked = 64;
const metadataShape: ShapeLimits = { depth: 16, values: 10_000 };

/** Returns the result of a call that failed for this reason. */
export function errorResult(text: string): ToolResult {
  return { output: { text: fitBytes(text, maxResultBytes) }, isError: true };
}

/** Returns the state shown for a call after this event. A call withheld because of a steer hasn't failed. */
export function endStateOf(
  event: Extract<AgentEvent, { type: 'tool_execution_end' }>,
): TimelineStep['state'] {
  if (!event.isError) return 'done';
  return event.result.text === resultText.skipped ? 'skipped' : 'failed';
}

/** Cuts what is too long, replaces what databases reject, and names what was left out. Never throws. */
export function boundResult(result: ToolResult): ToolResult {
  const { output, isError } = result;
  if (typeof output?.text !== 'string') return errorResult('the tool returned no text');
  // Tools come from plugins and may return anything.
  const images: readonly unknown[] = Array.isArray(output.images) ? output.images : [];
  const kept = images.slice(0, maxChecked).flatMap(fitOf).slice(0, maxImages);
  const left = images.length - kept.length;
  const note = left === 0 ? '' : `[left out: ${left} images that were too many, too large or not images]\n`;
  const metadata = jsonOrNothing(output.metadata);
  return {
    output: {
      text: fitBytes(note + textOf(output), maxResultBytes),
      ...(kept.length === 0 ? {} : { images: kept }),
      ...(metadata === undefined ? {} : { metadata }),
    },
    isError,
  };
}

/** Joins strangers' text, enclosed as data, and the tool's own, which stays whole: it says how to read on. */
function textOf({ untrusted, text }: ToolOutput): string {
  if (typeof untrusted?.text !== 'string') return text;
  const own = text === '' ? '' : `\n${text}`;
  const room = maxResultBytes - enclosureBytes - Buffer.byteLength(own);
  // Cleaning may lengthen it, so it is cut afterwards.
  const data = fitBytes(
    cleanUntrusted(untrusted.text.slice(0, maxResultBytes)),
    Math.max(room, enclosureBytes),
  );
  return wrapUntrusted(data, String(untrusted.about), newDelimiter()) + own;
}

/** Builds the transcript message of one result: the `tool_result` part, then a part for each image. */
export function resultMessage(
  call: ToolCallData,
  result: ToolResult,
  stamp: { readonly id: TranscriptId; readonly time: number },
): AgentMessage {
  const { text, images, metadata } = result.output;
  const resultPart: MessagePart = {
    type: 'tool_result',
    data: {
      tool_call_id: call.id,
      name: call.name,
      content: text,
      ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
      is_error: result.isError,
    },
  };
  const imageParts = (images ?? []).map(
    ({ mimeType, base64 }): MessagePart => ({
      type: 'image_url',
      data: { url: `data:${mimeType};base64,${base64}` },
    }),
  );
  return { id: stamp.id, role: 'tool', parts: [resultPart, ...imageParts], createdAt: stamp.time };
}

function fitOf(image: unknown): readonly FitImage[] {
  const { base64 } = (image ?? {}) as { readonly base64?: unknown };
  const fit = fitImage(base64);
  return fit === undefined ? [] : [fit];
}

/** Metadata is stored as JSON; values that JSON can't express (cycles, big integers, endless nesting) are dropped. */
function jsonOrNothing(metadata: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  if (metadata === undefined) return undefined;
  try {
    if (jsonProblem(metadata, metadataShape) !== undefined) return undefined;
    const written = JSON.stringify(metadata);
    return written.length > maxMetadataLength ? undefined : JSON.parse(written);
  } catch {
    return undefined;
  }
}

/** Texts that tell the model why a call didn't run. */
export const resultText = {
  denied: 'permission denied',
  unanswered: 'permission denied: nobody answered the question in time',
  revoked: 'permission denied: the person who asked for this may no longer do so',
  changed: 'not run: it would no longer do what was approved',
  cancelled: neverStarted,
  skipped,
  repeated: 'not run: this same call was made too many times in a row',
  cutOff: 'not run: the call was cut off before it was complete',
  truncated: 'not run: the answer reached its length limit, so the arguments may be incomplete',
  noTools: 'not run: no tools are available for this answer',
  brokenOff: "not run: the model's answer broke off",
  withheld: 'the tool ran, but a check of its result failed, so the result is withheld',
  mayNotWait: 'the tool asked to wait for an answer, which only a durable tool may do',
} as const;

/** Returns the same text for a call that had started and may have had its effect. */
export function begunText(text: string): string {
  return `${text}; it had started, outcome unknown`;
}

/** Returns the result text of a call that the end of the run kept from running or finishing. */
export function cutText(cut: AbortReason | undefined): string {
  switch (cut) {
    case 'timeout':
      return "cancelled: the run's time was up";
    case 'idle':
      return 'cancelled: the model stopped answering';
    case 'aborted':
    case undefined:
      return 'cancelled by user';
  }
}

/** `parley agent --message @file`: a message that is in a file, and task messages, which have a head. */
import { open } from 'node:fs/promises';
import type { z } from 'zod';
import { decodeText } from '#channel-kit/front-matter.ts';
import { ParleyError } from '#contracts/errors.ts';
import { stripText } from '../logging/redaction.ts';
import { isTaskMail, maxTaskBodyBytes } from '../mail/task-message.ts';
import { sendTaskMessage } from '../operations/task-messages.ts';
import type { createAsk } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';
import { printLines } from './print.ts';

/** A message as given on the command line: its text, and whether it is a task message. */
export type GivenMessage = { readonly text: string; readonly isTask: boolean };

/** The longest file that is read, bytes: the longest task and its head. */
const maxFileBytes = maxTaskBodyBytes + 32 * 1024;

/** Reads `@<file>`; any other text is the message itself. Throws `invalid_input` for a file that can't be a message. */
export async function readMessage(given: string): Promise<GivenMessage> {
  if (!given.startsWith('@')) return { text: given, isTask: false };
  const path = given.slice(1);
  const text = decodeText(await readBounded(path));
  if (text === undefined) throw invalid(`${stripText(path)} isn't UTF-8 text.`);
  return { text, isTask: isTaskMail(text) };
}

async function readBounded(path: string): Promise<Buffer> {
  const shown = stripText(path);
  try {
    await using file = await open(path);
    if (!(await file.stat()).isFile()) throw invalid(`${shown} isn't a file.`);
    const bytes = Buffer.alloc(maxFileBytes + 1);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    if (bytesRead > maxFileBytes)
      throw invalid(`${shown} is too large for a message: the limit is ${maxFileBytes} bytes.`);
    return bytes.subarray(0, bytesRead);
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : 'unreadable';
    throw invalid(
      `${shown} can't be read (${code}). Put a space before the @ if the message itself begins with it.`,
    );
  }
}

function invalid(text: string): ParleyError {
  return new ParleyError('invalid_input', text);
}

/** Sends a task message, and prints the reply once there is one. Running it again never does the task again. */
export async function sendTask(
  ask: ReturnType<typeof createAsk>,
  { waits, asJson, ...input }: TaskCall,
): Promise<ExitCode> {
  for (;;) {
    const sent = await ask(sendTaskMessage, { ...input, waitMs: waits ? waitMs : 0 }, waits ? waitMs : 0);
    const isOpen = sent.id !== undefined && sent.reply === undefined;
    if (isOpen && waits) continue;
    if (asJson) printLines([JSON.stringify(sent)]);
    else if (sent.reply !== undefined) printLines([sent.reply.trimEnd()]);
    else if (sent.id !== undefined) printLines([sent.id]);
    const note = asJson ? undefined : noteOn(sent);
    if (note !== undefined) process.stderr.write(`${note}\n`);
    return sent.state === 'failed' || sent.state === 'late' || sent.state === 'orphan' ? 1 : 0;
  }
}

export type TaskCall = {
  readonly message: string;
  readonly agent?: string;
  readonly waits: boolean;
  readonly asJson: boolean;
};

/** How long one call waits for the task's end, ms. */
const waitMs = 30_000;

type Sent = z.output<typeof sendTaskMessage.answer>;

function noteOn({ state, isKnown, reply }: Sent): string | undefined {
  switch (state) {
    case 'recorded':
      return 'The reply is recorded.';
    case 'late':
      return "The reply was archived: its subtask isn't waiting for one any more.";
    case 'orphan':
      return 'The reply was archived: there is no such subtask.';
    default:
      return isKnown === true && reply === undefined
        ? `The task came before and is ${state}. Add --wait to get its reply.`
        : undefined;
  }
}

/**
 * A tool whose answer comes from outside: it appends each question to a file, once per call, and a test answers
 * by writing another file. Every process reads both as long as it lives, so a question outlives its process.
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { type CallRef, defineTool, type SettleCall, type Tool } from '../../src/contracts/tool.ts';

/** `early`: the answer arrives before the tool says that it is waiting for one. */
const inputSchema = z.object({ early: z.boolean().default(false) });

export const effectsFile = (home: string) => join(home, 'effects');
/** Next to it: the answer to every question, and the result of each settlement. */
export const answersFile = (effects: string) => `${effects}.answer`;
export const settlementsFile = (effects: string) => `${effects}.settled`;
const askedFile = (effects: string) => `${effects}.asked`;

/** Answers every question from now on. */
export function answerAll(effects: string, text: string): void {
  writeFileSync(answersFile(effects), text);
}

/** Forgets all effects, questions and answers, which must be over. */
export function forgetEffects(home: string): void {
  const effects = effectsFile(home);
  for (const file of [effects, answersFile(effects), settlementsFile(effects), askedFile(effects)])
    rmSync(file, { force: true });
}

export function askingTool(effects: string, settle: SettleCall): Tool {
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'ask',
    description: 'Asks somebody, and waits for the answer.',
    inputSchema,
    parallelSafe: false,
    replay: 'durable',
    authority: 'guest',
    execute: async ({ early }, { callId, run: { runId } }) => {
      if (!askedIn(effects).some((call) => call.callId === callId && call.runId === runId)) {
        appendFileSync(effects, `ask ${callId}\n`);
        appendFileSync(askedFile(effects), `${JSON.stringify({ runId, callId })}\n`);
      }
      if (early) await settle({ runId, callId }, { text: 'approved early' });
      return { parked: { reason: 'an approval' } };
    },
  });
}

/** Settles all questions, including those of earlier processes, until the signal aborts. */
export async function keepAnswering(effects: string, settle: SettleCall, signal: AbortSignal): Promise<void> {
  const answered = new Set<string>();
  while (!signal.aborted) {
    const open = existsSync(answersFile(effects)) ? askedIn(effects) : [];
    for (const call of open.filter(({ callId }) => !answered.has(callId))) {
      const settlement = await settle(call, { text: readFileSync(answersFile(effects), 'utf8') });
      if (settlement !== 'not-started') answered.add(call.callId);
      appendFileSync(settlementsFile(effects), `${call.callId} ${settlement}\n`);
    }
    await pause(20);
  }
}

function askedIn(effects: string): readonly CallRef[] {
  if (!existsSync(askedFile(effects))) return [];
  const lines = readFileSync(askedFile(effects), 'utf8').trim().split('\n');
  // Only this file writes it.
  return lines.map((line) => JSON.parse(line) as CallRef);
}

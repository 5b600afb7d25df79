import { randomUUID } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { withPiece } from '../client/text-piece.js';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { bytesOf } from '../config/units.ts';
import { stripText } from '../logging/redaction.ts';
import { maxMessageChars, maxMessageFiles, sendMessage, waitForRun } from '../operations/agents.ts';
import { Deltas } from '../server/openai/deltas.ts';
import { agentRoster, type RosterEntry } from '../subagents/agent-roster.ts';
import { readMessage, sendTask } from './agent-task.ts';
import { askRunningGateway, createAsk, tokenOf } from './ask-gateway.ts';
import { printable } from './chat-screen.ts';
import type { ExitCode } from './exit-code.ts';
import { createFeedLink, endIn } from './follow.ts';
import { type CommandOutput, printLines } from './print.ts';

export type AgentCall = {
  readonly message: string;
  readonly agent?: string;
  readonly session?: string;
  readonly key?: string;
  /** Paths of files to send along. */
  readonly files?: readonly string[];
  readonly timeoutMs?: number;
  readonly prompt?: string;
  readonly waits: boolean;
  /** Prints the answer as it is written; waits, too. */
  readonly streams: boolean;
  readonly asJson: boolean;
};

/**
 * Sends a message through the running gateway. The answer is recorded and printed to stdout, but sent to no
 * conversation. Without `waits`, running it again with the same key and `--wait` fetches the answer later.
 * Throws `invalid_input` if the gateway refuses the message.
 */
export async function runAgent({
  waits,
  streams,
  asJson,
  key = randomUUID(),
  files = [],
  ...input
}: AgentCall): Promise<ExitCode> {
  const { text: message, isTask } = await readMessage(input.message);
  if (message.trim() === '') throw new ParleyError('invalid_input', 'The message is empty.');
  if (!isTask && message.length > maxMessageChars)
    throw new ParleyError(
      'invalid_input',
      `The message has ${message.length} characters; the limit is ${maxMessageChars}. Put the rest in a file in the agent's workspace.`,
    );
  const config = loadConfig();
  if (isTask) {
    refuseOptions({ ...input, files, streams });
    const again = "Run the same command again to continue; the task won't be done twice.";
    const ask = createAsk(await askRunningGateway(config), { again, config, token: await tokenOf(config) });
    const { agent } = input;
    return sendTask(ask, { message, ...(agent !== undefined && { agent }), waits, asJson });
  }
  const again = `Run the same command with --key ${key} to continue; the message won't be sent twice.`;
  const ask = createAsk(await askRunningGateway(config), { again, config, token: await tokenOf(config) });
  const sent = await readFiles(files, config.media.maxMb);
  const accepted = await ask(sendMessage, {
    ...input,
    message,
    key,
    ...(sent.length > 0 && { files: sent }),
  });
  const { runId } = accepted;
  if (!waits && !streams) {
    printLines([asJson ? JSON.stringify(accepted) : runId]);
    return 0;
  }
  const printed = streams && !asJson ? await printAsWritten(config, runId) : undefined;
  const result = await waitFor(ask, runId);
  if (asJson) printLines([JSON.stringify({ runId, ...result })]);
  else if (result.status !== 'ok') process.stderr.write(`${stripText(failureOf(runId, result))}\n`);
  else
    printLines([printed === undefined ? (result.text ?? '') : printable(printed.finish(result.text ?? ''))]);
  return result.status === 'ok' ? 0 : 1;
}

/** A task message has its own lane and key, and no other settings. Throws `invalid_input` for options without effect. */
function refuseOptions({
  session,
  timeoutMs,
  prompt,
  files,
  streams,
}: Pick<AgentCall, 'session' | 'timeoutMs' | 'prompt' | 'files' | 'streams'>): void {
  const given = [
    ...(session === undefined ? [] : ['--session']),
    ...(timeoutMs === undefined ? [] : ['--timeout']),
    ...(prompt === undefined ? [] : ['--prompt']),
    ...(files?.length ? ['--file'] : []),
    ...(streams ? ['--stream'] : []),
  ];
  if (given.length > 0)
    throw new ParleyError(
      'invalid_input',
      `A task message is sent without ${given.join(', ')}. Leave it out.`,
    );
}

/** Reads files to send. Throws `invalid_input` for one that can't be read, and if they are too large together. */
async function readFiles(paths: readonly string[], maxMb: number) {
  if (paths.length > maxMessageFiles)
    throw new ParleyError('invalid_input', `A message may have ${maxMessageFiles} files.`);
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path).catch(() => undefined))?.size));
  if (sizes.reduce<number>((sum, size = 0) => sum + size, 0) > bytesOf(maxMb))
    throw new ParleyError(
      'invalid_input',
      `The files are too large: together they may have ${maxMb} MB (media.maxMb).`,
    );
  return Promise.all(
    paths.map(async (path) => {
      try {
        return { name: basename(path).slice(-200), data: await readFile(path, 'base64') };
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : 'unreadable';
        throw new ParleyError('invalid_input', `${stripText(path)} can't be read (${code}).`);
      }
    }),
  );
}

type Ask = ReturnType<typeof createAsk>;

async function waitFor(ask: Ask, runId: string) {
  for (;;) {
    const result = await ask(waitForRun, { runId, timeoutMs: waitMs }, waitMs);
    if (result.status !== 'timeout') return result;
  }
}

/** Prints the answer as it is written, until the run has ended. Returns what tells the rest of it. */
async function printAsWritten(config: Config, runId: string): Promise<Deltas> {
  const deltas = new Deltas();
  let message = '';
  const show = (text: string | undefined) => {
    if (text === undefined) return;
    message = text;
    process.stdout.write(printable(deltas.take(text)));
  };
  for await (const step of createFeedLink(config, { run: runId })) {
    if (step.kind === 'unknown') break;
    const { frame } = step;
    if (frame.type === 'snapshot') show(frame.draft?.chat);
    if (frame.type !== 'event') continue;
    if (frame.event.kind === 'text' && frame.event.of === 'chat') show(withPiece(message, frame.event));
    if (endIn(frame)) break;
  }
  return deltas;
}

/** How long one call waits for the answer, ms. */
const waitMs = 30_000;

function failureOf(
  runId: string,
  { outcome = 'failed', reason }: z.output<typeof waitForRun.answer>,
): string {
  const why = reason === undefined ? '' : ` (${reason})`;
  return `The agent gave no answer: ${outcome}${why}. To see what happened, run: ${parleyCommand} why ${runId}`;
}

/** Lists the agents of the configuration. */
export async function listAgents(): Promise<CommandOutput> {
  const config = loadConfig();
  const agents = agentRoster(config).map((entry) => {
    const workspace = config.agents.find(({ id }) => id === entry.id)?.workspace ?? '';
    return { ...entry, workspace };
  });
  return { result: agents, lines: agents.flatMap(agentLines) };
}

function agentLines(agent: RosterEntry & { readonly workspace: string }): readonly string[] {
  const { id, name, specialty, capabilities, isDefault, model, askedBy, workspace } = agent;
  const askers = [...(askedBy.includes(id) ? ['itself'] : []), ...askedBy.filter((other) => other !== id)];
  return [
    `${id}  “${name}”  ${isDefault ? 'default, ' : ''}model ${model}  ${workspace}`,
    ...(specialty === undefined ? [] : [`  ${specialty}`]),
    ...(capabilities.length === 0 ? [] : [`  can: ${capabilities.join(', ')}`]),
    `  asked by: ${askers.join(', ') || 'no agent'}`,
  ];
}

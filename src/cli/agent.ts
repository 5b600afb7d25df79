import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { acceptedMessage, maxMessageChars } from '../server/agent-routes.ts';
import { waitAnswer } from '../server/wait-answer.ts';
import { askRunningGateway, headersForChange } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';
import { printLines } from './print.ts';

export type AgentCall = {
  readonly message: string;
  readonly agent?: string;
  readonly session?: string;
  readonly key?: string;
  readonly waits: boolean;
  readonly asJson: boolean;
};

const refusalSchema = z.object({ error: z.object({ code: z.string(), text: z.string().exactOptional() }) });
const resultSchema = z.looseObject(waitAnswer.shape);

/**
 * Sends a message through the running gateway. The answer is recorded and printed to stdout, but sent to no
 * conversation. Without `waits`, running it again with the same key and `--wait` fetches the answer later.
 * Throws `invalid_input` if the gateway refuses the message.
 */
export async function runAgent({
  waits,
  asJson,
  key = randomUUID(),
  ...input
}: AgentCall): Promise<ExitCode> {
  if (input.message.trim() === '') throw new ParleyError('invalid_input', 'The message is empty.');
  if (input.message.length > maxMessageChars)
    throw new ParleyError(
      'invalid_input',
      `The message has ${input.message.length} characters; the limit is ${maxMessageChars}. Put the rest in a file in the agent's workspace.`,
    );
  const config = loadConfig();
  const { url } = await askRunningGateway(config);
  const headers = await headersForChange(config);
  const body = JSON.stringify({ ...input, key });
  const ask = createAsk(url, key);
  const accepted = await ask(acceptedMessage, '/api/agent', { method: 'POST', headers, body });
  if (!waits) {
    printLines([asJson ? JSON.stringify(accepted) : accepted.runId]);
    return 0;
  }
  for (;;) {
    const query = new URLSearchParams({ runId: accepted.runId, timeoutMs: '30000' });
    const result = await ask(resultSchema, `/api/agent/wait?${query}`, { headers });
    if (result.status === 'timeout') continue;
    if (asJson) printLines([JSON.stringify({ runId: accepted.runId, ...result })]);
    else if (result.status === 'ok') printLines([result.text ?? '']);
    else process.stderr.write(`${stripText(failureOf(accepted.runId, result))}\n`);
    return result.status === 'ok' ? 0 : 1;
  }
}

function failureOf(runId: string, { outcome = 'failed', reason }: z.infer<typeof waitAnswer>): string {
  const why = reason === undefined ? '' : ` (${reason})`;
  return `The agent gave no answer: ${outcome}${why}. To see what happened, run: ${parleyCommand} why ${runId}`;
}

/** Asks the gateway. A message may be stored even if no answer came, so the error names the key to continue with. */
function createAsk(url: string, key: string) {
  const goOn = `Run the same command with --key ${key} to continue; the message won't be sent twice.`;
  return async <Output>(schema: z.ZodType<Output>, path: string, request: RequestInit): Promise<Output> => {
    const { status, body } = await read(`${url}${path}`, request).catch((cause: unknown) => {
      throw new ParleyError('store_unavailable', `The gateway at ${url} stopped responding. ${goOn}`, {
        cause,
      });
    });
    if (status < 400) return schema.parse(body);
    const { code, text = code } = refusalSchema.parse(body).error;
    throw new ParleyError('invalid_input', status < 500 ? text : `${text} ${goOn}`);
  };
}

async function read(url: string, request: RequestInit): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(url, { ...request, redirect: 'manual' });
  return { status: answer.status, body: await answer.json() };
}

import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { maxMessageChars, sendMessage, waitForRun } from '../operations/agents.ts';
import type { Operation } from '../operations/operation.ts';
import { askOne, askRunningGateway, fail, type RunningGateway, tokenOf } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';
import { type CommandOutput, printLines } from './print.ts';

export type AgentCall = {
  readonly message: string;
  readonly agent?: string;
  readonly session?: string;
  readonly key?: string;
  readonly waits: boolean;
  readonly asJson: boolean;
};

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
  const ask = createAsk(await askRunningGateway(config), { key, config, token: await tokenOf(config) });
  const accepted = await ask(sendMessage, { ...input, key });
  if (!waits) {
    printLines([asJson ? JSON.stringify(accepted) : accepted.runId]);
    return 0;
  }
  for (;;) {
    const result = await ask(waitForRun, { runId: accepted.runId, timeoutMs: waitMs }, waitMs);
    if (result.status === 'timeout') continue;
    if (asJson) printLines([JSON.stringify({ runId: accepted.runId, ...result })]);
    else if (result.status === 'ok') printLines([result.text ?? '']);
    else process.stderr.write(`${stripText(failureOf(accepted.runId, result))}\n`);
    return result.status === 'ok' ? 0 : 1;
  }
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

/** Asks the gateway. A message may be stored even if no answer came, so the error names the key to continue with. */
function createAsk(
  gateway: RunningGateway,
  { key, config, token }: { readonly key: string; readonly config: Config; readonly token: string },
) {
  const continueRun = `Run the same command with --key ${key} to continue; the message won't be sent twice.`;
  return async <Input extends z.ZodType, Answer extends z.ZodType>(
    operation: Operation<never, Input, Answer>,
    input: z.input<Input>,
    waitMs = 0,
  ): Promise<z.output<Answer>> => {
    const asked = await askOne(gateway, { token, waitMs }, operation, input);
    switch (asked.kind) {
      case 'answer':
        return asked.answer;
      case 'silent':
        throw new ParleyError(
          'store_unavailable',
          `The gateway at ${gateway.url} stopped responding. ${continueRun}`,
        );
      case 'refused':
        throw new ParleyError('invalid_input', `${asked.text ?? asked.code} ${continueRun}`);
      default:
        return fail(asked, config);
    }
  };
}

/** Lists the agents of the configuration. */
export async function listAgents(): Promise<CommandOutput> {
  const config = loadConfig();
  const agents = config.agents.map(({ id, name, model = config.model, workspace }) => ({
    ...{ id, name, isDefault: id === config.defaultAgent, model, workspace },
  }));
  const lines = agents.map(
    ({ id, name, isDefault, model, workspace }) =>
      `${id}  “${name}”  ${isDefault ? 'default, ' : ''}model ${model}  ${workspace}`,
  );
  return { result: agents, lines };
}

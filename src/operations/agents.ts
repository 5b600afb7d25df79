/** Spec 15: `agent` answers immediately with the reserved run id, `agent/wait` returns the run's result. */
import { z } from 'zod';
import { cleanText } from '#channel-kit/clean-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Outcome } from '#contracts/outcome.ts';
import type { AgentService } from '../service/agent-service.ts';
import type { RunResult } from '../store/reads/read-run-result.ts';
import { type RosterEntry, rosterEntrySchema } from '../subagents/agent-roster.ts';
import { type Caller, operation, Refusal } from './operation.ts';

export type AgentDeps = {
  readonly agents: Pick<
    AgentService,
    'send' | 'steer' | 'requestSummary' | 'wait' | 'payloadsOf' | 'cancel' | 'cancelRun' | 'isBusy' | 'workOf'
  >;
};

export type RosterDeps = { roster(): readonly RosterEntry[] };

/** Lists the agents of the configuration. */
export const listAgents = operation({
  name: 'agents',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Lists the agents, what they are good at, and which agents may ask them',
  answer: z.object({ agents: z.array(rosterEntrySchema).readonly() }),
  run: async ({ roster }: RosterDeps) => ({ agents: roster() }),
});

/** The longest message that a program may send, UTF-16 units. */
export const maxMessageChars = 16_000;

/** How many files a message may have. */
export const maxMessageFiles = 10;

/** Longest instructions that a program may give a run, UTF-16 units. */
const maxPromptChars = 16_000;
/** The shortest and longest time that it may set, ms. */
const timeoutRangeMs = { min: 1_000, max: 3_600_000 } as const;

const name = z.string().min(1).max(2048);
const runId = z.string().min(1).max(200);
const message = z.string().min(1).max(maxMessageChars);
const choice = {
  session: name.exactOptional().describe('A session key, instead of an agent; absent: your own conversation'),
  agent: name.exactOptional().describe('Absent: the default agent'),
};
const key = z
  .string()
  .min(1)
  .max(200)
  .exactOptional()
  .describe('Idempotency key: the same message under the same key counts once, with one run id');
const file = z.strictObject({
  name: z.string().min(1).max(200),
  data: z
    .string()
    .refine(isBase64, 'Not base64.')
    .meta({ contentEncoding: 'base64' })
    .describe('Its bytes in base64; at most `media.maxMb`, for all files of the message together'),
});
const acceptedMessage = z.object({ runId: z.string(), session: z.string(), acceptedAt: z.int() });

/** Accepts a message for an agent. */
export const sendMessage = operation({
  name: 'agent',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  once: 'own',
  summary:
    'Sends an agent a message; answers once it is stored, with the id of the run that it starts or joins',
  takesFiles: true,
  input: z.strictObject({
    message,
    ...choice,
    key,
    files: z.array(file).max(maxMessageFiles).exactOptional(),
    timeoutMs: z
      .int()
      .min(timeoutRangeMs.min)
      .max(timeoutRangeMs.max)
      .exactOptional()
      .describe('Limit on the run’s time, if it is below the configured one'),
    prompt: z
      .string()
      .min(1)
      .max(maxPromptChars)
      .exactOptional()
      .describe(
        'For this run, instead of the agent’s own instructions. With it or `timeoutMs`, the message has a run of its own',
      ),
  }),
  answer: acceptedMessage,
  refusals: ['invalid_input', 'key_reused'],
  run: ({ agents }: AgentDeps, { files = [], timeoutMs, prompt, ...input }, caller) => {
    const override = {
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(prompt !== undefined && { prompt: cleanText(prompt) }),
    };
    const sent = files.map(({ name, data }) => ({ name, bytes: Buffer.from(data, 'base64') }));
    const isSet = Object.keys(override).length > 0;
    const asked = { ...input, key: keyFor(caller, input.key) };
    return orRefusal(agents.send({ ...asked, files: sent, ...(isSet && { override }) }));
  },
});

/** Joins the session's run, whatever its queue mode. */
export const steerSession = operation({
  name: 'agent/steer',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  once: 'own',
  summary:
    'Gives a session’s run a message, which it reads before its next step, with that run’s rights; without a run, starts one',
  input: z.strictObject({ session: name, message, key }),
  answer: acceptedMessage,
  refusals: ['invalid_input', 'key_reused'],
  run: ({ agents }: AgentDeps, { session, message: text, key: once }, caller) =>
    orRefusal(agents.steer(session, text, keyFor(caller, once))),
});

/** Its run is waited for, followed and cancelled like any other. */
export const summarizeSession = operation({
  name: 'agent/summarize',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  once: 'own',
  summary:
    'Starts to summarize the older part of a session that isn’t busy; its feed reports the progress as `compaction`',
  input: z.strictObject({ ...choice, key }),
  answer: acceptedMessage,
  refusals: ['invalid_input', 'not_possible', 'key_reused'],
  run: async ({ agents }: AgentDeps, input, caller) =>
    (await orRefusal(agents.requestSummary({ ...input, key: keyFor(caller, input.key) }))) ??
    new Refusal('not_possible', 'The session is busy. Try again when its run has ended.'),
});

/** Covers the work of every process. */
export const showBusy = operation({
  name: 'agent/busy',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Says whether a session has a run or a waiting message, or without a session whether any has',
  input: z.strictObject({ session: name.exactOptional() }),
  answer: z.object({
    isBusy: z.boolean(),
    isStreaming: z
      .boolean()
      .exactOptional()
      .describe(
        'A process is working on the session’s run, which doesn’t wait for an approval or a sub-agent',
      ),
  }),
  refusals: ['not_found'],
  run: async ({ agents }: AgentDeps, { session }) =>
    session === undefined
      ? { isBusy: await agents.isBusy() }
      : ((await agents.workOf(session)) ?? new Refusal('not_found', 'There is no such session.')),
});

/** Checks the length, since decoding skips what it doesn't know; an expression would overflow on a large file. */
function isBase64(data: string): boolean {
  const units = data.replace(/={1,2}$/, '').length;
  return data.length % 4 === 0 && Buffer.from(data, 'base64').length === Math.floor((units * 3) / 4);
}

/** Keys belong to the token, so that one program learns nothing of another's; the owner's are as given, for `why`. */
function keyFor({ by }: Caller, given: string | undefined): string | undefined {
  return given !== undefined && by.startsWith('token:') ? `${by}/${given}` : given;
}

/** Turns what the service doesn't accept into a refusal. */
async function orRefusal<Answer>(answer: Promise<Answer>): Promise<Answer | Refusal> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error;
    if (error.code !== 'invalid_input' && error.code !== 'key_reused') throw error;
    return new Refusal(error.code, error.message);
  }
}

const usage = z.object({
  inputTokens: z.int(),
  outputTokens: z.int(),
  cacheReadTokens: z.int(),
  cacheWriteTokens: z.int(),
  cost: z.int().describe('Micro-dollars'),
});

/** The answer of `agent.wait` (spec 15); times in ms since the epoch. */
const waitAnswer = z.object({
  status: z
    .enum(['ok', 'error', 'timeout'])
    .describe('`timeout`: the wait is over, but the run continues; ask again'),
  startedAt: z.int().exactOptional().describe('Absent while the message is waiting, and if no run took it'),
  endedAt: z.int().exactOptional().describe('Absent while the run continues, even with a later message'),
  error: z.object({ code: z.enum(['run_timeout', 'failed', 'cancelled', 'refused']) }).exactOptional(),
  mergedInto: z.string().exactOptional().describe('The run that took the message, if it is another one'),
  outcome: z.enum(['answered', 'silent', 'merged', 'cancelled', 'refused', 'failed']).exactOptional(),
  reason: z.string().exactOptional().describe('Why it ended this way, as in a trace of the message'),
  text: z.string().exactOptional().describe('The answer; empty when the agent chose to be silent'),
  payloads: z
    .array(z.object({ text: z.string() }))
    .readonly()
    .exactOptional()
    .describe('Everything that its run has said since the message, oldest first, as a chat would get it'),
  usage: usage.exactOptional().describe("Sums over the run's model calls"),
});

/** Answers `timeout` while the run continues. */
export const waitForRun = operation({
  name: 'agent/wait',
  method: 'GET',
  right: 'owner',
  scope: 'operate',
  summary: 'Waits until a run has ended, and returns its result; never stops the run',
  input: z.strictObject({
    runId,
    timeoutMs: z.coerce.number().int().min(0).max(600_000).default(30_000),
  }),
  answer: waitAnswer,
  refusals: ['not_found'],
  run: async ({ agents }: AgentDeps, { runId: run, timeoutMs }, { signal }) => {
    const result = await agents.wait(run, timeoutMs, signal);
    if (result.kind === 'unknown') return new Refusal('not_found');
    const answer = waitAnswerOf(result);
    return result.kind === 'open' ? answer : { ...answer, payloads: await agents.payloadsOf(run) };
  },
});

/** Stops a run. */
export const cancelRun = operation({
  name: 'agent/cancel',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  summary:
    'Stops a run and its sub-agents, or cancels its waiting message; with a session: all that programs have there',
  input: z.union([z.strictObject({ runId }), z.strictObject({ session: name })]),
  answer: z.object({ isCancelled: z.boolean().describe('False: there was nothing to stop') }),
  refusals: ['not_found'],
  run: async ({ agents }: AgentDeps, what) => {
    const isCancelled =
      'runId' in what ? await agents.cancelRun(what.runId) : await agents.cancel(what.session);
    return isCancelled === undefined ? new Refusal('not_found') : { isCancelled };
  },
});

/** Converts a run's result for the program that waits for it. */
function waitAnswerOf(result: Exclude<RunResult, { kind: 'unknown' }>): z.infer<typeof waitAnswer> {
  if (result.kind === 'open') {
    const { kind: _, laneKey: _lane, ...facts } = result;
    return { status: 'timeout', ...facts };
  }
  const { kind: _, laneKey: _lane, ...facts } = result;
  const code = errorCodeOf(facts);
  return code === undefined ? { status: 'ok', ...facts } : { status: 'error', error: { code }, ...facts };
}

/** Returns undefined when the agent did what it was asked; silence and one answer to several messages count as that. */
function errorCodeOf({ outcome, reason }: { readonly outcome: Outcome; readonly reason?: string }) {
  switch (outcome) {
    case 'answered':
    case 'silent':
    case 'merged':
      return undefined;
    case 'cancelled':
    case 'refused':
    case 'failed':
      return reason === runTimeout ? 'run_timeout' : outcome;
    default:
      return outcome satisfies never;
  }
}

/** The reason that the loop and a sub-agent's deadline give when their time is over. */
const runTimeout = 'timeout';

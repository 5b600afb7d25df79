/** The answers of OpenAI's API: one shape each for a complete answer, the events of a stream, and an error. */
import { z } from 'zod';
import type { RunUsage } from '../../store/reads/read-run-result.ts';

/** Identity of an answer; the same for every repetition of its call. */
export type AnswerHead = {
  readonly runId: string;
  readonly model: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly conversation: string;
  readonly after: string | undefined;
};

export const modelObject = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
});
export const modelList = z.object({ object: z.literal('list'), data: z.array(modelObject) });

const chatUsage = z.object({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  prompt_tokens_details: z.object({ cached_tokens: z.int() }),
});

export const chatAnswer = z.object({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.string(),
  choices: z.array(
    z.object({
      index: z.int(),
      message: z.object({ role: z.literal('assistant'), content: z.string(), refusal: z.null() }),
      logprobs: z.null(),
      finish_reason: z.literal('stop'),
    }),
  ),
  usage: chatUsage,
});

const outputText = z.object({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.never()),
});
const outputItem = z.object({
  type: z.literal('message'),
  id: z.string(),
  status: z.enum(['in_progress', 'completed']),
  role: z.literal('assistant'),
  content: z.array(outputText),
});
const error = z.object({ code: z.string(), message: z.string() });

export const responseAnswer = z.object({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.int(),
  status: z.enum(['in_progress', 'completed', 'failed']),
  error: z.union([error, z.null()]),
  incomplete_details: z.null(),
  instructions: z.null(),
  max_output_tokens: z.null(),
  model: z.string(),
  output: z.array(outputItem),
  parallel_tool_calls: z.boolean(),
  previous_response_id: z.union([z.string(), z.null()]),
  conversation: z.object({ id: z.string() }),
  store: z.boolean(),
  temperature: z.null(),
  text: z.object({ format: z.object({ type: z.literal('text') }) }),
  tool_choice: z.literal('none'),
  tools: z.array(z.never()),
  top_p: z.null(),
  truncation: z.literal('disabled'),
  usage: z.union([
    z.object({
      input_tokens: z.int(),
      input_tokens_details: z.object({ cached_tokens: z.int() }),
      output_tokens: z.int(),
      output_tokens_details: z.object({ reasoning_tokens: z.int() }),
      total_tokens: z.int(),
    }),
    z.null(),
  ]),
  metadata: z.object({}),
});

/** Returns the usage of a run; OpenAI counts cached tokens as part of the prompt. */
function chatUsageOf(usage: RunUsage): z.infer<typeof chatUsage> {
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.outputTokens,
    total_tokens: prompt + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cacheReadTokens },
  };
}

export function chatAnswerOf(head: AnswerHead, text: string, usage: RunUsage): z.infer<typeof chatAnswer> {
  return {
    id: `chatcmpl-${head.runId}`,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: chatUsageOf(usage),
  };
}

/** Returns a chunk of a stream. `isLast`: the answer is complete. */
export function chatChunkOf(head: AnswerHead, delta: object, isLast: boolean) {
  return {
    ...chunkHead(head),
    choices: [{ index: 0, delta, logprobs: null, finish_reason: isLast ? 'stop' : null }],
  };
}

/** Returns the chunk with the usage, which has no choices. */
export function usageChunkOf(head: AnswerHead, usage: RunUsage) {
  return { ...chunkHead(head), choices: [], usage: chatUsageOf(usage) };
}

function chunkHead({ runId, created, model }: AnswerHead) {
  return { id: `chatcmpl-${runId}`, object: 'chat.completion.chunk', created, model } as const;
}

export const responsePrefix = 'resp_';

/** The state of a response: its text once it is complete, or why it failed. */
type ResponseState =
  | { readonly status: 'in_progress' }
  | { readonly status: 'completed'; readonly text: string; readonly usage: RunUsage }
  | { readonly status: 'failed'; readonly error: z.infer<typeof error> };

export function responseOf(head: AnswerHead, state: ResponseState): z.infer<typeof responseAnswer> {
  const isDone = state.status === 'completed';
  return {
    id: `${responsePrefix}${head.runId}`,
    object: 'response',
    created_at: head.created,
    status: state.status,
    error: state.status === 'failed' ? state.error : null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: head.model,
    output: isDone ? [outputItemOf(head, state.text)] : [],
    parallel_tool_calls: true,
    previous_response_id: head.after === undefined ? null : `${responsePrefix}${head.after}`,
    conversation: { id: head.conversation },
    store: true,
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: 'none',
    tools: [],
    top_p: null,
    truncation: 'disabled',
    usage: isDone ? responseUsageOf(state.usage) : null,
    metadata: {},
  };
}

function responseUsageOf(usage: RunUsage) {
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = chatUsageOf(usage);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cacheReadTokens },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: total,
  };
}

/** Returns the message of a response; without a text it has only begun. */
export function outputItemOf({ runId }: AnswerHead, text?: string): z.infer<typeof outputItem> {
  return {
    ...{ type: 'message', id: `msg_${runId}`, role: 'assistant' },
    ...(text === undefined
      ? { status: 'in_progress', content: [] }
      : { status: 'completed', content: [outputTextOf(text)] }),
  };
}

export function outputTextOf(text: string): z.infer<typeof outputText> {
  return { type: 'output_text', text, annotations: [] };
}

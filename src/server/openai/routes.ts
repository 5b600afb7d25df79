/**
 * OpenAI's API for programs: the models are the agents, and the conversation is kept here. A call that is repeated, by
 * its `Idempotency-Key` or as a counted attempt of OpenAI's clients, waits for the same run; a connection that is lost
 * stops nothing.
 */

import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { AcceptedCall, ProgramCaller, ProgramCalls, RefusedCall } from '../../service/program-calls.ts';
import type { RunResult } from '../../store/reads/read-run-result.ts';
import type { ApiCall } from '../api-call.ts';
import { type EventStream, openEventStream } from '../event-stream.ts';
import type { Identity } from '../identity.ts';
import { openAiError } from '../openai-error.ts';
import {
  type AnswerHead,
  chatAnswer,
  chatAnswerOf,
  chatChunkOf,
  modelList,
  modelObject,
  outputItemOf,
  outputTextOf,
  responseAnswer,
  responseOf,
  responsePrefix,
  usageChunkOf,
} from './answers.ts';
import { Deltas } from './deltas.ts';
import { BadRequest, chatRequest, type OpenAiAsk, readAsk, responseRequest } from './read-request.ts';

export type OpenAiDeps = {
  readonly programs: ProgramCalls;
  /** Largest image, bytes. */
  readonly maxImageBytes: number;
};

const models = {
  method: 'GET',
  path: '/v1/models',
  summary: 'Lists the agents as models, as OpenAI’s API does',
  access: 'program',
  scope: 'chat',
  answer: modelList,
} as const satisfies ApiCall;

const model = {
  method: 'GET',
  path: '/v1/models/:model',
  summary: 'Shows one agent as a model',
  access: 'program',
  scope: 'chat',
  answer: modelObject,
} as const satisfies ApiCall;

const chat = {
  method: 'POST',
  path: '/v1/chat/completions',
  summary:
    'Asks an agent, as OpenAI’s API does: the last user message counts; with `stream`, as server-sent events',
  access: 'program',
  scope: 'chat',
  input: chatRequest,
  answer: chatAnswer,
} as const satisfies ApiCall;

const responses = {
  method: 'POST',
  path: '/v1/responses',
  summary:
    'Asks an agent, as OpenAI’s API does: the last user message counts; with `stream`, as server-sent events',
  access: 'program',
  scope: 'chat',
  input: responseRequest,
  answer: responseAnswer,
} as const satisfies ApiCall;

const response = {
  method: 'GET',
  path: '/v1/responses/:id',
  summary: 'Shows a response of this token, as it is now',
  access: 'program',
  scope: 'chat',
  answer: responseAnswer,
} as const satisfies ApiCall;

/** Room for the rest of a body: clients send the whole conversation along. */
const spareBytes = 4 * 1024 * 1024;

/** Adds the routes. Their errors have OpenAI's shape, like those of the server on these paths. */
export function mountOpenAi(app: FastifyInstance, deps: OpenAiDeps): void {
  const { programs } = deps;
  const all = programs.agents.map(({ id }) => modelOf(id));
  const get = (call: ApiCall, handler: (request: FastifyRequest, reply: FastifyReply) => unknown) =>
    app.get(call.path, { config: { access: 'program', scope: 'chat', call } }, async (request, reply) =>
      handler(request, reply),
    );
  get(models, () => ({ object: 'list', data: all }));
  get(model, (request, reply) => {
    const { model: id } = z.object({ model: z.string() }).parse(request.params);
    return all.find((one) => one.id === id) ?? sendError(reply, unknownModel(id));
  });
  get(response, (request, reply) => showResponse(programs, { request, reply }));
  const rest = { access: 'program', scope: 'chat', call: 'none' } as const;
  app.route({
    ...{ method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], url: '/v1/*', config: rest },
    handler: (_, reply) => sendError(reply, { status: 404, code: 'not_found' }),
  });
  const bodyLimit = Math.ceil(deps.maxImageBytes * 1.4) + spareBytes;
  for (const [kind, call] of [['chat', chat] as const, ['response', responses] as const]) {
    // It may be large, and then takes long; it is read only for those who may call.
    const config = { access: 'program', scope: 'chat', call, isUpload: true } as const;
    app.post(call.path, { config, bodyLimit }, (request, reply) =>
      answer(programs, kind, { request, reply }),
    );
  }
}

async function showResponse(programs: ProgramCalls, { request, reply }: Exchange) {
  const { id } = z.object({ id: z.string() }).parse(request.params);
  const runId = runIdOf(id) ?? '';
  const call = await programs.find(callerOf(request.identity), runId);
  if (!call) return sendError(reply, unknownResponse);
  const { conversation, agent, acceptedAt, result } = call;
  const head = {
    runId,
    conversation,
    created: Math.floor(acceptedAt / 1000),
    model: agent,
    after: undefined,
  };
  if (result.kind === 'open') return responseOf(head, { status: 'in_progress' });
  const failure = failureOf(head, result);
  if (!failure) {
    const { text, usage } = result as EndedRun;
    return responseOf(head, { status: 'completed', text, usage });
  }
  const { code, message } = openAiError(failure).error;
  return responseOf(head, { status: 'failed', error: { code, message } });
}

const unknownResponse: ErrorFacts = {
  status: 404,
  code: 'not_found',
  text: 'There is no such response of this token.',
};

function modelOf(id: string): z.infer<typeof modelObject> {
  return { id, object: 'model', created: 0, owned_by: 'parley' };
}

type Kind = 'chat' | 'response';
type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply };

async function answer(
  programs: ProgramCalls,
  kind: Kind,
  { request, reply }: Exchange,
): Promise<FastifyReply> {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  const ask = readAsk(
    kind,
    request.body,
    header(request, 'x-parley-conversation') ?? header(request, 'x-openwebui-chat-id'),
  );
  if (ask instanceof BadRequest) return sendError(reply, { status: 400, ...ask, text: ask.message });
  const accepted = await programs.accept(
    {
      caller: callerOf(request.identity),
      agent: ask.model,
      conversation: ask.conversation,
      after: runIdOf(ask.after),
      ...{ text: ask.text, images: ask.images },
      digest: digestOf(kind, request.body),
      key: header(request, 'idempotency-key'),
      retry: attemptsBefore(request),
    },
    gone.signal,
  );
  if (accepted.kind === 'refused') return sendError(reply, refusalOf(accepted, ask));
  const { runId, conversation, acceptedAt } = accepted;
  const created = Math.floor(acceptedAt / 1000);
  const head: AnswerHead = { runId, conversation, created, model: ask.model, after: runIdOf(ask.after) };
  reply.headers({ 'x-request-id': runId, 'x-parley-conversation': encodeURIComponent(conversation) });
  if (!ask.isStream) return answerWhole(kind, head, { reply, events: accepted.events });
  const stream = openEventStream(reply, gone.signal);
  await (kind === 'chat' ? streamChat : streamResponse)(stream, head, { ask, events: accepted.events });
  return reply;
}

/** Returns a header's value if it is a usable name. */
function header({ headers }: FastifyRequest, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value.length > 0 && value.length <= 200 ? value : undefined;
}

/** Reads how many attempts OpenAI's clients have made before this one. */
function attemptsBefore(request: FastifyRequest): number {
  const count = Number(header(request, 'x-stainless-retry-count') ?? 0);
  return Number.isInteger(count) && count >= 0 && count <= 100 ? count : 0;
}

/** The access token is the owner; so is a token that may change everything anyway. */
function callerOf(identity: Identity | undefined): ProgramCaller {
  if (identity?.kind !== 'token') return { id: 'owner', name: 'API', authority: 'owner' };
  const { id, name, scopes } = identity.token;
  return { id, name, authority: scopes.includes('operate') ? 'owner' : 'member' };
}

/** Hashes what was asked; how the answer is sent makes no difference. */
function digestOf(kind: Kind, body: unknown): string {
  const { stream: _, stream_options: _options, ...asked } = body as Record<string, unknown>;
  return createHash('sha256').update(kind).update(JSON.stringify(asked)).digest('base64url');
}

function runIdOf(responseId: string | undefined): string | undefined {
  return responseId?.startsWith(responsePrefix) ? responseId.slice(responsePrefix.length) : responseId;
}

type ErrorFacts = Parameters<typeof openAiError>[0];

function sendError(reply: FastifyReply, facts: ErrorFacts): FastifyReply {
  // Repeating the call would end the same way: clients would do so for 409 and 5xx.
  return reply.code(facts.status).header('x-should-retry', 'false').send(openAiError(facts));
}

function unknownModel(id: string): ErrorFacts {
  const text = `There is no agent “${id.slice(0, 60)}”. GET /v1/models lists them.`;
  return { status: 404, code: 'model_not_found', param: 'model', text };
}

function refusalOf({ reason }: RefusedCall, { model: id }: OpenAiAsk): ErrorFacts {
  const param = 'previous_response_id';
  switch (reason) {
    case 'unknown_agent':
      return unknownModel(id);
    case 'unknown_response':
      return {
        status: 400,
        code: 'previous_response_not_found',
        param,
        text: 'There is no such response of this token.',
      };
    case 'other_agent':
      return {
        status: 400,
        code: 'invalid_request',
        param,
        text: 'That response is another agent’s: name that one as the model.',
      };
    case 'key_reused':
      return {
        status: 409,
        code: 'idempotency_key_reused',
        text: 'This Idempotency-Key was used for another request.',
      };
    case 'image_unreadable':
      return {
        status: 400,
        code: 'invalid_image',
        param: 'image_url',
        text: 'An image isn’t PNG, JPEG, GIF or WebP.',
      };
    default:
      return reason satisfies never;
  }
}

type EndedRun = Extract<RunResult, { kind: 'ended' }>;

/** Returns why a run has no answer; undefined if it has one, or was silent by decision. */
function failureOf({ runId }: AnswerHead, result: RunResult): ErrorFacts | undefined {
  if (result.kind !== 'ended') return { status: 500, code: 'internal' };
  const { outcome, reason } = result;
  const see = `${reason === undefined ? '' : ` (${reason})`}. To see more, run: ${parleyCommand} why ${runId}`;
  switch (outcome) {
    case 'answered':
    case 'silent':
    case 'merged':
      return undefined;
    case 'cancelled':
      return { status: 409, code: 'run_cancelled', text: `The run was stopped${see}` };
    case 'refused':
      return { status: 403, code: 'run_refused', text: `Parley refused the message${see}` };
    case 'failed':
      return { status: 500, code: 'run_failed', text: `The run failed${see}` };
    default:
      return outcome satisfies never;
  }
}

type Events = AcceptedCall['events'];

async function answerWhole(
  kind: Kind,
  head: AnswerHead,
  { reply, events }: { readonly reply: FastifyReply; readonly events: Events },
): Promise<FastifyReply> {
  for await (const event of events) {
    if (event.kind === 'text') continue;
    const failure = failureOf(head, event.result);
    if (failure) return sendError(reply, failure);
    const { text, usage } = event.result as EndedRun;
    return reply.send(
      kind === 'chat'
        ? chatAnswerOf(head, text, usage)
        : responseOf(head, { status: 'completed', text, usage }),
    );
  }
  // The caller has gone.
  return reply.hijack();
}

type StreamSource = { readonly ask: OpenAiAsk; readonly events: Events };

async function streamChat(
  stream: EventStream,
  head: AnswerHead,
  { ask, events }: StreamSource,
): Promise<void> {
  const deltas = new Deltas();
  await stream.send(chatChunkOf(head, { role: 'assistant', content: '' }, false));
  for await (const event of events) {
    if (event.kind === 'text') {
      const content = deltas.take(event.text);
      if (content !== '' && !(await stream.send(chatChunkOf(head, { content }, false)))) return;
      continue;
    }
    const failure = failureOf(head, event.result);
    if (failure) {
      await stream.send(openAiError(failure));
      return stream.end();
    }
    const { text, usage } = event.result as EndedRun;
    const content = deltas.finish(text);
    if (content !== '') await stream.send(chatChunkOf(head, { content }, false));
    await stream.send(chatChunkOf(head, {}, true));
    if (ask.hasUsage) await stream.send(usageChunkOf(head, usage));
    return stream.end('[DONE]');
  }
}

async function streamResponse(
  stream: EventStream,
  head: AnswerHead,
  { events }: StreamSource,
): Promise<void> {
  const deltas = new Deltas();
  let number = 0;
  const tell = (type: string, more: object) =>
    stream.send({ type, ...more, sequence_number: number++ }, type);
  const item = { item_id: `msg_${head.runId}`, output_index: 0 };
  const part = { ...item, content_index: 0 };
  const begun = responseOf(head, { status: 'in_progress' });
  await tell('response.created', { response: begun });
  await tell('response.in_progress', { response: begun });
  await tell('response.output_item.added', { output_index: 0, item: outputItemOf(head) });
  await tell('response.content_part.added', { ...part, part: outputTextOf('') });
  const append = async (delta: string) =>
    delta === '' || tell('response.output_text.delta', { ...part, delta, logprobs: [] });
  for await (const event of events) {
    if (event.kind === 'text') {
      if (!(await append(deltas.take(event.text)))) return;
      continue;
    }
    const failure = failureOf(head, event.result);
    if (failure) {
      const { code, message } = openAiError(failure).error;
      await tell('response.failed', {
        response: responseOf(head, { status: 'failed', error: { code, message } }),
      });
      return stream.end();
    }
    const { text, usage } = event.result as EndedRun;
    await append(deltas.finish(text));
    await tell('response.output_text.done', { ...part, text, logprobs: [] });
    await tell('response.content_part.done', { ...part, part: outputTextOf(text) });
    await tell('response.output_item.done', { output_index: 0, item: outputItemOf(head, text) });
    await tell('response.completed', { response: responseOf(head, { status: 'completed', text, usage }) });
    return stream.end();
  }
}

import type OpenAI from 'openai';
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions';
import { ParleyError } from '#contracts/errors.ts';
import type {
  LlmProvider,
  ModelAnswer,
  ModelEvent,
  ModelFailure,
  ModelPrices,
  ModelRequest,
  Usage,
} from '#contracts/model.ts';
import { aborted, brokenStream, cutOff, unbuilt } from '../api-fault.ts';
import { type Connection, openConnection } from '../connection.ts';
import { failureError } from '../model-failure.ts';
import { type OpenAiAccess, OpenAiClients } from './openai-clients.ts';
import { ChunkReader, type ReaderTerms } from './openai-events.ts';
import { isSameModel, openAiModel } from './openai-models.ts';
import { type OpenAiRequest, toOpenAiRequest } from './openai-request.ts';
import { chargeOf, usageOf, type WireUsage } from './openai-usage.ts';

export type OpenAiOptions = OpenAiAccess & {
  /** The provider's name in the configuration, for people and the ledger. */
  readonly name?: string;
  readonly model: string;
  /** Instead of what is known of the model. */
  readonly prices?: ModelPrices;
  readonly contextWindow?: number;
  readonly answerTokens?: number;
};

type Sent = { readonly request: OpenAiRequest };

/** Any model behind the Chat Completions API, through OpenAI's SDK, whose retries are off (retry.ts decides). */
export function createOpenAiProvider(options: OpenAiOptions): LlmProvider {
  const { prices, contextWindow, answerTokens } = options;
  const model = {
    ...openAiModel(options.model),
    ...(prices && { prices }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(answerTokens !== undefined && { answerTokens }),
  };
  const clients = new OpenAiClients(options);
  /** Parameters that this server has refused. */
  const unsupported = new Set<string>();
  const pricesOf = (id: string) =>
    prices ?? (isSameModel(id, model.id) ? model.prices : openAiModel(id).prices);

  /** Asks once more without each parameter that the server does not take. */
  async function call<Answer>(
    request: ModelRequest,
    sent: { request: OpenAiRequest | undefined },
    ask: (client: OpenAI, request: OpenAiRequest) => Promise<Answer>,
  ): Promise<Answer> {
    for (;;) {
      const made = toOpenAiRequest(request, { model, unsupported });
      sent.request = made;
      try {
        return await clients.call((client) => ask(client, made));
      } catch (error) {
        const name = await clients.unsupportedIn(error);
        if (name === undefined || unsupported.has(name)) throw error;
        unsupported.add(name);
      }
    }
  }

  async function failureOf(
    error: unknown,
    at: { readonly signal: AbortSignal; readonly isReading: boolean; readonly sent: Partial<Sent> },
  ): Promise<ModelFailure> {
    if (at.signal.aborted) return aborted;
    const fault = await clients.faultIn(error, at.sent.request?.sources ?? []);
    return fault?.failure ?? (at.isReading ? brokenStream(error) : unbuilt(error));
  }

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    if (signal.aborted) return yield { type: 'error', failure: aborted };
    const connection = openConnection(signal);
    const sent: { request: OpenAiRequest | undefined } = { request: undefined };
    let isReading = false;
    try {
      const chunks = await call(request, sent, (client, { params }) =>
        client.chat.completions.create(
          {
            ...params,
            stream: true,
            ...(!unsupported.has('stream_options') && { stream_options: { include_usage: true } }),
          },
          { signal: connection.signal },
        ),
      );
      isReading = true;
      const terms: ReaderTerms = { model: model.id, pricesOf, estimate: (length) => guess(request, length) };
      yield* translate(chunks[Symbol.asyncIterator](), { connection, reader: new ChunkReader(terms) });
    } catch (error) {
      const made = sent.request ? { request: sent.request } : {};
      yield { type: 'error', failure: await failureOf(error, { signal, isReading, sent: made }) };
    } finally {
      connection.close();
    }
  }

  async function send(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const sent: { request: OpenAiRequest | undefined } = { request: undefined };
    try {
      const answer = await call(request, sent, (client, { params }) =>
        client.chat.completions.create({ ...params, stream: false }, { signal }),
      );
      return answerIn(answer, (text) => ({
        model: answer.model || model.id,
        usage: guess(request, text.length),
        pricesOf,
      }));
    } catch (error) {
      if (error instanceof ParleyError) throw error;
      const made = sent.request ? { request: sent.request } : {};
      throw failureError(await failureOf(error, { signal, isReading: false, sent: made }), error);
    }
  }

  return { id: options.name ?? 'openai', stream, send, model: () => model };
}

type AnswerTerms = {
  readonly model: string;
  /** When the server does not say. */
  readonly usage: Usage;
  readonly pricesOf: (model: string) => ModelPrices;
};

/** Throws `model_refused` when the model refused, `model_failed` without an answer. */
function answerIn(answer: ChatCompletion, termsOf: (text: string) => AnswerTerms): ModelAnswer {
  const choice = answer.choices?.[0];
  const text = choice?.message?.content ?? '';
  if (choice?.finish_reason === 'content_filter' || (text === '' && choice?.message?.refusal)) {
    throw failureError({ kind: 'refused', detail: 'refused' });
  }
  if (choice === undefined) throw failureError({ kind: 'failed', detail: 'the answer holds no choice' });
  const { model, usage: guessed, pricesOf } = termsOf(text);
  const wire: WireUsage | undefined = answer.usage;
  const usage = wire ? usageOf(wire) : guessed;
  return { text, usage, cost: chargeOf(usage, wire, pricesOf(model)), model };
}

/** Hands on the last event as soon as it is there: the stream's own end may be a while behind it. */
async function* translate(
  chunks: AsyncIterator<ChatCompletionChunk>,
  { connection, reader }: { readonly connection: Connection; readonly reader: ChunkReader },
): AsyncGenerator<ModelEvent> {
  let fault: { readonly error: unknown } | undefined;
  while (!reader.isWhole) {
    const step = await chunks.next().catch((error: unknown) => {
      fault = { error };
      return undefined;
    });
    if (step === undefined || step.done === true) break;
    yield* reader.read(step.value);
  }
  if (connection.signal.aborted) return yield { type: 'error', failure: aborted };
  const ending = reader.end();
  if (ending === undefined) {
    if (fault !== undefined) throw fault.error;
    return yield { type: 'error', failure: cutOff };
  }
  const rest = fault === undefined ? connection.readToEnd(chunks) : undefined;
  const last = ending.at(-1);
  // The next call follows at once and is to find the connection free.
  if (last?.type === 'complete' && last.finish === 'tool_use') await rest;
  yield* ending;
}

/** Characters / 4: a server that does not count still has a context to keep within. */
function guess({ system, messages, tools }: ModelRequest, answerLength: number): Usage {
  return {
    inputTokens: Math.ceil(JSON.stringify([system, messages, tools]).length / 4),
    outputTokens: Math.ceil(answerLength / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
}

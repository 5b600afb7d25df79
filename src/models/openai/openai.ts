import type OpenAI from 'openai';
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions';
import { rememberSuccess } from '#channel-kit/keep-recent.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { LlmProvider, ModelAnswer, ModelEvent, ModelRequest, Usage } from '#contracts/model.ts';
import { hidingVariables } from '../../config/environment.ts';
import { aborted, cutOff, failureError, neverSent } from '../api-fault.ts';
import { Asker } from '../asker.ts';
import { authorOf, withOwnThinking } from '../own-thinking.ts';
import { estimateUsage } from '../prices.ts';
import { type ApiAccess, configuredInfo, type ProviderOptions } from '../provider-options.ts';
import { type ClientOptions, type Connection, openConnection, SdkClients } from '../sdk-clients.ts';
import { refusing, throwIfRefused } from '../server-refusal.ts';
import { withTidyStreams } from '../tidy-stream.ts';
import { createHabit, readWritten, textOfAnswer } from '../written/read-answer.ts';
import { brokenOff, ChunkReader, type ReaderTerms, refused, textIn } from './openai-events.ts';
import { openAiModel } from './openai-models.ts';
import { toOpenAiRequest } from './openai-request.ts';
import {
  type AnswerPrices,
  chargeOf,
  countedUsage,
  type WireTimings,
  type WireUsage,
} from './openai-usage.ts';

/** Creates the provider of any Chat Completions model, over OpenAI's SDK without its retries (retry.ts decides). */
export function createOpenAiProvider(options: ProviderOptions): LlmProvider {
  const { prices } = options;
  const model = configuredInfo(openAiModel(options.model), options);
  const author = authorOf(options, 'openai');
  const { clock = systemClock } = options;
  const access = { ...options, fetch: withTidyStreams(refusing(options.fetch ?? globalThis.fetch)) };
  const clients = openAiClients(access);
  const asker = new Asker({ clients, access, model, clock, make: toOpenAiRequest });
  const habit = createHabit(options.model);
  const pricesOf = (id: string) => ({ answered: prices ?? openAiModel(id).prices, asked: model.prices });

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    if (signal.aborted) return yield { type: 'error', failure: neverSent };
    const connection = openConnection(signal);
    const question = asker.question(withOwnThinking(request, author), 'streamed');
    try {
      const chunks = await question.ask((client, { wire, withUsage }) =>
        client.chat.completions.create(
          { ...wire, stream: true, ...withUsage },
          { signal: connection.signal },
        ),
      );
      const terms: ReaderTerms = {
        ...{ model: model.id, author, pricesOf, leftOutTools: question.leftOutTools },
        estimate: (length) => estimateUsage(request, length),
      };
      const events = translate(chunks[Symbol.asyncIterator](), {
        ...{ connection, reader: new ChunkReader(terms) },
      });
      yield* readWritten(events, request, habit);
    } catch (error) {
      yield { type: 'error', failure: await question.failureOf(error, signal) };
    } finally {
      connection.close();
    }
  }

  async function send(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const question = asker.question(withOwnThinking(request, author), 'whole');
    try {
      const answer = await question.ask((client, { wire }) =>
        client.chat.completions.create({ ...wire, stream: false }, { signal }),
      );
      const whole = answerIn(unwrapped(answer), (text, named) => ({
        model: named || model.id,
        usage: estimateUsage(request, text.length),
        pricesOf,
      }));
      return { ...whole, text: textOfAnswer(whole.text, { tools: request.tools, habit }) };
    } catch (error) {
      if (error instanceof ParleyError) throw error;
      throw failureError(await question.failureOf(error, signal), error);
    }
  }

  return { id: options.name ?? 'openai', ready: () => asker.load(), stream, send, model: () => asker.info() };
}

type AnswerTerms = {
  readonly model: string;
  /** Used when the server reports none. */
  readonly usage: Usage;
  readonly pricesOf: (model: string) => AnswerPrices;
};

/** Returns the answer; throws `model_refused` when the model refused, `model_failed` without an answer. */
function answerIn(
  answer: ChatCompletion,
  termsOf: (text: string, model: string) => AnswerTerms,
): ModelAnswer {
  // Has the type that OpenAI documents; other servers put anything there.
  const choices: readonly (ChatCompletion.Choice | null)[] = Array.isArray(answer.choices)
    ? answer.choices
    : [];
  const choice = choices.find((each) => each !== null);
  if (choice === undefined) throw failureError({ kind: 'failed', detail: 'the answer contains no choice' });
  const text = textIn(choice.message?.content);
  const { model, usage: guessed, pricesOf } = termsOf(text, answer.model);
  const wire: WireUsage | undefined = answer.usage;
  // Has the type that OpenAI documents; llama.cpp adds its own counts.
  const { timings } = answer as { readonly timings?: WireTimings };
  const counted = countedUsage(wire, timings, text !== '');
  const usage = counted ?? guessed;
  const spent = { usage, cost: chargeOf(usage, wire, pricesOf(model)), model };
  if (brokenOff.test(choice.finish_reason)) throw failureError(cutOff);
  if (refused.test(choice.finish_reason) || (text === '' && choice.message?.refusal)) {
    throw failureError({ kind: 'refused', detail: 'refused', ...(counted && { counted: spent }) });
  }
  return { text, ...spent, ...(counted === undefined && { isUncounted: true }) };
}

/** Some gateways put the answer into an envelope. */
function unwrapped(answer: ChatCompletion): ChatCompletion {
  const { data } = answer as { readonly data?: ChatCompletion | null };
  return answer.choices === undefined && data?.choices !== undefined ? data : answer;
}

/** How long the rest of a complete answer may take to arrive, ms. */
const restMs = 5_000;

/** Passes on the last event as soon as it arrives: the stream itself may end a while later. */
async function* translate(
  chunks: AsyncIterator<ChatCompletionChunk>,
  { connection, reader }: { readonly connection: Connection; readonly reader: ChunkReader },
): AsyncGenerator<ModelEvent> {
  let fault: { readonly error: unknown } | undefined;
  while (!reader.isWhole) {
    const next = chunks.next().catch((error: unknown) => {
      fault = { error };
      return undefined;
    });
    const step = await (reader.hasEnded ? orNothing(next, restMs) : next);
    if (step === undefined || step.done === true) break;
    throwIfRefused(step.value);
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
  // The next call follows immediately and should find the connection free.
  if (last?.type === 'complete' && last.finish === 'tool_use') await rest;
  yield* ending;
}

/** Returns nothing if the promise takes too long. */
async function orNothing<T>(wanted: Promise<T>, ms: number): Promise<T | undefined> {
  const late = new AbortController();
  const timer = new Promise<undefined>((resolve) => {
    const handle = setTimeout(() => resolve(undefined), ms);
    late.signal.addEventListener('abort', () => clearTimeout(handle), { once: true });
  });
  return Promise.race([wanted, timer]).finally(() => late.abort());
}

/** OpenAI's own server. */
export const openAiHost = 'https://api.openai.com/v1';
/** Sent to servers that need no key, because the SDK insists on one. */
const NO_KEY = 'none';

/** Creates the clients of OpenAI's SDK, which takes 370 ms and 35 MB to load. */
function openAiClients(access: ApiAccess): SdkClients<OpenAI> {
  const load = rememberSuccess(() => import('openai'));
  const create = async ({ apiKey, ...options }: ClientOptions) => {
    const { OpenAI } = await load();
    const all = { apiKey: apiKey || NO_KEY, baseURL: openAiHost, ...options };
    return hidingVariables('OPENAI_', () => new OpenAI(all));
  };
  return new SdkClients({ api: 'openai', load, create }, access);
}

import type Anthropic from '@anthropic-ai/sdk';
import type {
  Message,
  MessageCreateParamsBase,
  RawMessageStreamEvent,
  TextBlock,
} from '@anthropic-ai/sdk/resources/messages/messages';
import { rememberSuccess } from '#channel-kit/keep-recent.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { LlmProvider, ModelAnswer, ModelEvent, ModelInfo, ModelRequest } from '#contracts/model.ts';
import { hidingVariables } from '../config/environment.ts';
import { type AnswerTerms, EventReader, mergeUsage } from './anthropic-events.ts';
import { type ClaudeModel, claudeModel, toAnthropicRequest } from './anthropic-request.ts';
import { aborted, cutOff, failureError, neverSent } from './api-fault.ts';
import { Asker, type AskTerms } from './asker.ts';
import { type AnswerHead, CacheWatch } from './cache-watch.ts';
import { authorOf, withOwnThinking } from './own-thinking.ts';
import { costOf, estimateUsage, isPriced, lookUpPrices, noUsage } from './prices.ts';
import { type ApiAccess, configuredInfo, type ProviderOptions } from './provider-options.ts';
import { type ClientOptions, type Connection, openConnection, SdkClients } from './sdk-clients.ts';
import { refusing, throwIfRefused } from './server-refusal.ts';
import { withTidyStreams } from './tidy-stream.ts';
import { createHabit, readWritten, textOfAnswer } from './written/read-answer.ts';

/** Creates the provider of Claude, over Anthropic's own SDK without its retries (retry.ts decides). */
export function createAnthropicProvider(options: ProviderOptions): LlmProvider {
  const model = configuredInfo(claudeModel(options.model), options);
  const terms = answerTerms(model, options);
  const { clock = systemClock } = options;
  const access = { ...options, fetch: withTidyStreams(refusing(options.fetch ?? globalThis.fetch)) };
  const clients = anthropicClients(access);
  const watch = isAnthropicServer(options) ? new CacheWatch() : undefined;
  const make = (request: ModelRequest, known: AskTerms<ClaudeModel>) =>
    toAnthropicRequest(request, { ...known, diagnostics: watch?.ask(request) });
  const asker = new Asker({ clients, access, model, clock, make });
  const habit = createHabit(options.model);

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    if (signal.aborted) return yield { type: 'error', failure: neverSent };
    const connection = openConnection(signal);
    const question = asker.question(withOwnThinking(request, terms.author), 'streamed');
    let sent: MessageCreateParamsBase | undefined;
    try {
      const events = await question.ask((client, { wire, headers }) => {
        sent = wire;
        return client.messages.create({ ...wire, stream: true }, { headers, signal: connection.signal });
      });
      const estimate = (length: number) => estimateUsage(request, length);
      const missOf = (head: AnswerHead) => sent && watch?.answered(request, sent, head);
      const reader = new EventReader({ ...terms, estimate, missOf });
      yield* readWritten(translate(events[Symbol.asyncIterator](), { connection, reader }), request, habit);
    } catch (error) {
      yield { type: 'error', failure: await question.failureOf(error, signal) };
    } finally {
      connection.close();
    }
  }

  async function send(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const question = asker.question(withOwnThinking(request, terms.author), 'whole');
    try {
      const message = await question.ask((client, { wire, headers }) =>
        client.messages.create({ ...wire, stream: false }, { headers, signal }),
      );
      const whole = answerIn(message, { ...terms, estimate: (length) => estimateUsage(request, length) });
      return { ...whole, text: textOfAnswer(whole.text, { tools: request.tools, habit }) };
    } catch (error) {
      if (error instanceof ParleyError) throw error;
      throw failureError(await question.failureOf(error, signal), error);
    }
  }

  return {
    id: options.name ?? 'anthropic',
    ready: () => asker.load(),
    stream,
    send,
    model: () => asker.info(),
  };
}

/** A proxy may name an unknown model or none; such an answer is priced like the requested model. */
function answerTerms(asked: ModelInfo, options: ProviderOptions): Omit<AnswerTerms, 'estimate' | 'missOf'> {
  const { prices } = options;
  const pricesOf = (answered: string) => {
    const listed = lookUpPrices(answered);
    return prices ?? (isPriced(listed) ? listed : asked.prices);
  };
  return { model: asked.id, author: authorOf(options, 'anthropic'), pricesOf };
}

/** Returns the answer; throws `model_refused` when the model refused. */
function answerIn(
  { content, stop_reason, usage: wire, model: named }: Message,
  terms: Omit<AnswerTerms, 'missOf'>,
): ModelAnswer {
  const blocks: readonly Message['content'][number][] = Array.isArray(content) ? content : [];
  const texts = blocks.filter((block): block is TextBlock => block?.type === 'text');
  const text = texts.map((block) => block.text).join('');
  const told = mergeUsage(noUsage, wire);
  const isCounted =
    told.inputTokens + told.cacheReadTokens + told.cacheWriteTokens > 0 && told.outputTokens > 0;
  const usage = isCounted ? told : terms.estimate(text.length);
  const model = named || terms.model;
  const counted = { usage, cost: costOf(usage, terms.pricesOf(model)), model };
  if (stop_reason === 'refusal')
    throw failureError({ kind: 'refused', detail: 'refused', ...(isCounted && { counted }) });
  return { text, ...counted, ...(!isCounted && { isUncounted: true }) };
}

/** Passes on the last event as soon as it arrives: the stream itself may end a while later. */
async function* translate(
  events: AsyncIterator<RawMessageStreamEvent>,
  { connection, reader }: { readonly connection: Connection; readonly reader: EventReader },
): AsyncGenerator<ModelEvent> {
  for (;;) {
    const step = await nextOf(events);
    if (step.kind !== 'event') {
      // A complete answer matters more than how its connection ended.
      const last = connection.signal.aborted || isReportedBy(step) ? undefined : reader.endHere();
      if (last !== undefined) return yield last;
      if (step.kind === 'broken') throw step.error;
      return yield { type: 'error', failure: connection.signal.aborted ? aborted : cutOff };
    }
    throwIfRefused(step.event);
    for (const event of reader.read(step.event)) {
      if (event.type !== 'complete' && event.type !== 'error') {
        yield event;
        continue;
      }
      const rest = connection.readToEnd(events);
      // The next call follows immediately and should find the connection free.
      if (event.type === 'complete' && event.finish === 'tool_use') await rest;
      return yield event;
    }
  }
}

type Step =
  | { readonly kind: 'event'; readonly event: RawMessageStreamEvent }
  | { readonly kind: 'over' }
  | { readonly kind: 'broken'; readonly error: unknown };

async function nextOf(events: AsyncIterator<RawMessageStreamEvent>): Promise<Step> {
  try {
    const step = await events.next();
    return step.done === true ? { kind: 'over' } : { kind: 'event', event: step.value };
  } catch (error) {
    return { kind: 'broken', error };
  }
}

/** Says whether the platform itself reported the failure, by an `error` event rather than a broken connection. */
function isReportedBy(step: Exclude<Step, { kind: 'event' }>): boolean {
  const { error } = step.kind === 'broken' ? (step.error as { error?: unknown }) : { error: undefined };
  return typeof error === 'object' && error !== null;
}

/** Anthropic's own server. */
export const anthropicHost = 'https://api.anthropic.com';

/** Says whether the settings lead to Anthropic's own server, which has features that compatible ones may refuse. */
function isAnthropicServer({ baseUrl = anthropicHost }: Pick<ApiAccess, 'baseUrl'>): boolean {
  return URL.canParse(baseUrl) && new URL(baseUrl).origin === anthropicHost;
}

/** Creates the clients of Anthropic's SDK, which takes 100 ms to load. */
function anthropicClients(access: ApiAccess): SdkClients<Anthropic> {
  const load = rememberSuccess(() => import('@anthropic-ai/sdk'));
  const create = async (options: ClientOptions) => {
    const { Anthropic } = await load();
    const all = { baseURL: anthropicHost, openTelemetry: false as const, ...options };
    return hidingVariables('ANTHROPIC_', () => new Anthropic(all));
  };
  return new SdkClients({ api: 'anthropic', load, create }, access);
}

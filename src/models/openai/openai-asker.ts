import type OpenAI from 'openai';
import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import type { ModelFailure, ModelRequest } from '#contracts/model.ts';
import { aborted, brokenStream, oversizedIn, unbuilt } from '../api-fault.ts';
import { type ApiAccess, secretsIn } from '../provider-options.ts';
import { openAiClients } from './openai-clients.ts';
import { unsupportedIn } from './openai-failure.ts';
import type { OpenAiModel } from './openai-models.ts';
import { type OpenAiRequest, toOpenAiRequest } from './openai-request.ts';

/** Parameters with which a stream requests its usage, which some servers refuse. */
type WithUsage = { readonly stream_options?: { readonly include_usage: true } };

type Ask<Answer> = (
  client: OpenAI,
  params: ChatCompletionCreateParamsNonStreaming,
  withUsage: WithUsage,
) => Promise<Answer>;

/** How long to assume that a server still doesn't accept something, ms. */
const learnedForMs = 3_600_000;

/** Calls one model of one server, and remembers what that server doesn't accept. */
export class OpenAiAsker {
  readonly #asking: AskerDeps;

  constructor(access: ApiAccess & { readonly clock?: Pick<Clock, 'now'> }, model: OpenAiModel) {
    const { clock = systemClock } = access;
    const keys = secretsIn(access);
    this.#asking = { clients: openAiClients(access), keys, model, clock, learned: new Map() };
  }

  question(request: ModelRequest): Question {
    return new Question(this.#asking, request);
  }

  load(): Promise<void> {
    return this.#asking.clients.load();
  }
}

type AskerDeps = {
  readonly clients: ReturnType<typeof openAiClients>;
  readonly keys: readonly string[];
  readonly model: OpenAiModel;
  readonly clock: Pick<Clock, 'now'>;
  /** Names of what the server doesn't accept, and when it said so, ms since the epoch. */
  readonly learned: Map<string, number>;
};

/** One request and its progress. */
class Question {
  readonly #asking: AskerDeps;
  readonly #request: ModelRequest;
  #made: OpenAiRequest | undefined;
  #isAnswered = false;

  constructor(asking: AskerDeps, request: ModelRequest) {
    this.#asking = asking;
    this.#request = request;
  }

  /** True if the request offered tools but was sent without them. */
  get leftOutTools(): boolean {
    return this.#request.tools.length > 0 && this.#made?.hasTools === false;
  }

  /** Sends the request, and sends it again without each thing that the server turns out not to accept. */
  async ask<Answer>(ask: Ask<Answer>): Promise<Answer> {
    const { clients, model, clock, learned } = this.#asking;
    // A concurrent request may learn the same.
    const refused = new Set<string>();
    for (;;) {
      const since = clock.now() - learnedForMs;
      const unsupported = new Set([...learned].flatMap(([name, at]) => (at > since ? name : [])));
      const made = toOpenAiRequest(this.#request, { model, unsupported });
      this.#made = made;
      const withUsage = unsupported.has('stream_options')
        ? {}
        : ({ stream_options: { include_usage: true } } as const);
      try {
        const answer = await clients.call((client) => ask(client, made.params, withUsage));
        this.#isAnswered = true;
        return answer;
      } catch (error) {
        const refusal = await clients.refusalIn(error);
        const name = refusal && unsupportedIn(refusal, made);
        if (name === undefined || refused.has(name)) throw error;
        refused.add(name);
        learned.set(name, clock.now());
      }
    }
  }

  /** Classifies an error. Before the answer begins, an unknown fault is our own and would recur. */
  async failureOf(error: unknown, signal: AbortSignal): Promise<ModelFailure> {
    if (signal.aborted) return aborted;
    const { clients, keys } = this.#asking;
    const known = oversizedIn(error) ?? (await clients.faultIn(error, this.#made))?.failure;
    return known ?? (this.#isAnswered ? brokenStream(error) : unbuilt(error, keys));
  }
}

import type OpenAI from 'openai';
import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions';
import type { ModelFailure, ModelRequest } from '#contracts/model.ts';
import { aborted, brokenStream, unbuilt } from '../api-fault.ts';
import type { ApiAccess } from '../provider-options.ts';
import { OpenAiClients } from './openai-clients.ts';
import type { OpenAiModel } from './openai-models.ts';
import { type OpenAiRequest, toOpenAiRequest } from './openai-request.ts';

/** Parameters of a stream that asks for its usage, which some servers refuse. */
type WithUsage = { readonly stream_options?: { readonly include_usage: true } };

type Ask<Answer> = (
  client: OpenAI,
  params: ChatCompletionCreateParamsNonStreaming,
  withUsage: WithUsage,
) => Promise<Answer>;

/** Asks one model of one server, and remembers which parameters that server does not take. */
export class OpenAiAsker {
  readonly #asking: Asking;

  constructor(access: ApiAccess, model: OpenAiModel) {
    const { apiKeys: keys } = access;
    this.#asking = { clients: new OpenAiClients(access), keys, model, unsupported: new Set() };
  }

  question(request: ModelRequest): Question {
    return new Question(this.#asking, request);
  }
}

type Asking = {
  readonly clients: OpenAiClients;
  readonly keys: readonly string[];
  readonly model: OpenAiModel;
  readonly unsupported: Set<string>;
};

/** One request, and how far it has come. */
class Question {
  readonly #asking: Asking;
  readonly #request: ModelRequest;
  #made: OpenAiRequest | undefined;
  #isAnswered = false;

  constructor(asking: Asking, request: ModelRequest) {
    this.#asking = asking;
    this.#request = request;
  }

  /** Asks once more without each parameter that the server does not take. */
  async ask<Answer>(ask: Ask<Answer>): Promise<Answer> {
    const { clients, model, unsupported } = this.#asking;
    for (;;) {
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
        const name = await clients.unsupportedIn(error);
        if (name === undefined || unsupported.has(name)) throw error;
        unsupported.add(name);
      }
    }
  }

  /** Until the answer begins a fault is our own, and the same a second time. */
  async failureOf(error: unknown, signal: AbortSignal): Promise<ModelFailure> {
    if (signal.aborted) return aborted;
    const { clients, keys } = this.#asking;
    const fault = await clients.faultIn(error, this.#made?.sources ?? []);
    return fault?.failure ?? (this.#isAnswered ? brokenStream(error) : unbuilt(error, keys));
  }
}

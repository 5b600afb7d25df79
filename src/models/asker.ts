import type { ModelFailure, ModelInfo, ModelRequest } from '#contracts/model.ts';
import { type ApiFault, aborted, brokenStream, oversizedIn, unbuilt } from './api-fault.ts';
import { faultIn, type JudgedRefusal, judgeError } from './model-fault.ts';
import { type ApiAccess, secretsIn } from './provider-options.ts';
import type { SdkClients } from './sdk-clients.ts';
import {
  DOCUMENTS,
  IMAGES,
  type RequestFeatures,
  SYSTEM,
  TOOLS,
  type UnsupportedNames,
  unsupportedIn,
  withoutDocuments,
  withoutImages,
  withoutSystem,
  withoutTools,
} from './unsupported.ts';

/** A request as it is sent. */
export type MadeRequest = RequestFeatures & {
  /** The longest answer that it asks for, tokens. */
  readonly maxTokens: number;
  /** Index of the request's message for each message on the wire; -1: none. Absent: they are the same. */
  readonly sources?: readonly number[];
};

/** How one provider's API is asked. */
export type AskedApi<Client, Made extends MadeRequest, Info extends ModelInfo> = {
  readonly clients: SdkClients<Client>;
  readonly access: ApiAccess;
  readonly model: Info;
  readonly clock: { now(): number };
  make(request: ModelRequest, terms: AskTerms<Info>): Made;
};

/** The state of knowledge under which a request is made. */
export type AskTerms<Info> = {
  readonly model: Info;
  readonly unsupported: UnsupportedNames;
  readonly isStreamed: boolean;
};

/** How often one question may be asked again for less. */
const maxCuts = 4;
/** Shorter answers aren't worth a call, tokens. */
const shortestAnswer = 256;

/** Asks one model of one server, and remembers what that server's refusals teach about it. */
export class Asker<Client, Made extends MadeRequest, Info extends ModelInfo> {
  readonly #api: AskedApi<Client, Made, Info>;
  readonly #limits = new ModelLimits();

  constructor(api: AskedApi<Client, Made, Info>) {
    this.#api = api;
  }

  question(request: ModelRequest, kind: 'streamed' | 'whole'): Question<Client, Made, Info> {
    return new Question(this.#api, this.#limits, { request, isStreamed: kind === 'streamed' });
  }

  /** The model's facts, as far as they are known by now. */
  info(): Info {
    return this.#limits.applyTo(this.#api.model);
  }

  load(): Promise<void> {
    return this.#api.clients.load();
  }
}

/** One request and its progress. */
class Question<Client, Made extends MadeRequest, Info extends ModelInfo> {
  readonly #api: AskedApi<Client, Made, Info>;
  readonly #limits: ModelLimits;
  readonly #request: ModelRequest;
  readonly #isStreamed: boolean;
  /** Names that this question was refused for; another one may have learned it at the same time. */
  readonly #refused = new Set<string>();
  #made: Made | undefined;
  #client: Client | undefined;
  #cap = Number.POSITIVE_INFINITY;
  #cuts = 0;
  #isAnswered = false;

  constructor(
    api: AskedApi<Client, Made, Info>,
    limits: ModelLimits,
    { request, isStreamed }: { readonly request: ModelRequest; readonly isStreamed: boolean },
  ) {
    this.#api = api;
    this.#limits = limits;
    this.#request = request;
    this.#isStreamed = isStreamed;
  }

  /** True if the request offered tools but was sent without them. */
  get leftOutTools(): boolean {
    return this.#request.tools.length > 0 && this.#made?.hasTools === false;
  }

  /**
   * Sends the request. Sends it again without what the server turns out not to accept, and for a shorter answer if the
   * one asked for doesn't fit or can't be paid.
   */
  async ask<Answer>(send: (client: Client, made: Made) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      const made = this.#make();
      this.#made = made;
      try {
        const answer = await this.#api.clients.call(
          (client) => {
            this.#client = client;
            return send(client, made);
          },
          (error, isConnection) => faultIn(error, isConnection, this.#call(made)),
        );
        this.#isAnswered = true;
        return answer;
      } catch (error) {
        const judged = judgeError(error, { request: this.#request });
        if (judged === undefined || !(this.#adapt(judged, made) || this.#cut(judged, made))) throw error;
      }
    }
  }

  /** Classifies an error. Before the answer begins, an unknown fault is our own and would recur. */
  async failureOf(error: unknown, signal: AbortSignal): Promise<ModelFailure> {
    if (signal.aborted) return aborted;
    const oversized = oversizedIn(error);
    if (oversized) return oversized;
    const { clients, access } = this.#api;
    const fault = await clients.faultIn(error, (given, isConnection) =>
      faultIn(given, isConnection, this.#call(this.#made)),
    );
    if (fault !== undefined && this.#isAnswered && this.#changesNext(error, fault))
      return again(fault.failure);
    return fault?.failure ?? (this.#isAnswered ? brokenStream(error) : unbuilt(error, secretsIn(access)));
  }

  /** Learns from an error inside a stream. Says whether the same request, asked again, is sent differently. */
  #changesNext(error: unknown, fault: ApiFault): boolean {
    const [client, made] = [this.#client, this.#made];
    if (fault.isAboutKey) return client !== undefined && this.#api.clients.moveOn(client, fault);
    const judged = judgeError(error, { request: this.#request });
    return judged !== undefined && made !== undefined && this.#adapt(judged, made);
  }

  #make(): Made {
    const { model, clock } = this.#api;
    const now = clock.now();
    const unsupported = this.#limits.unsupported(now);
    const cap = Math.min(this.#cap, this.#limits.longestAnswer(now), this.#request.maxTokens);
    let request: ModelRequest = { ...this.#request, maxTokens: cap };
    if (unsupported.has(TOOLS)) request = withoutTools(request);
    if (unsupported.has(IMAGES)) request = withoutImages(request);
    if (unsupported.has(DOCUMENTS) || !model.takesDocuments) request = withoutDocuments(request);
    if (unsupported.has(SYSTEM)) request = withoutSystem(request);
    const terms = { model: this.#limits.applyTo(model), unsupported, isStreamed: this.#isStreamed };
    return this.#api.make(request, terms);
  }

  #call(made: Made | undefined) {
    const { access, clock } = this.#api;
    const secrets = secretsIn(access);
    const sources = made?.sources;
    return { request: this.#request, secrets, now: clock.now(), ...(sources && { sources }) };
  }

  /** Learns what the server doesn't accept. Returns false if there is nothing to leave out. */
  #adapt(judged: JudgedRefusal, made: Made): boolean {
    const cut = judged.is === 'answer-limit' && judged.sizes.answer !== undefined;
    const name = cut ? undefined : unsupportedIn(judged, made);
    if (name === undefined || this.#refused.has(name)) return false;
    this.#refused.add(name);
    this.#limits.refuse(name, this.#api.clock.now());
    return true;
  }

  /** Asks for a shorter answer. Returns false if that wouldn't help. */
  #cut(judged: JudgedRefusal, made: Made): boolean {
    if (judged.is === 'overflow') this.#learnWindow(judged);
    const tokens = this.#affordableAnswer(judged, made);
    if (tokens === undefined || tokens < shortestAnswer || tokens >= made.maxTokens) return false;
    this.#cuts += 1;
    if (this.#cuts > maxCuts) return false;
    if (judged.is === 'answer-limit') this.#limits.learnAnswer(tokens);
    if (judged.is === 'credit') this.#limits.learnAffordable(tokens, this.#api.clock.now());
    this.#cap = tokens;
    return true;
  }

  #learnWindow({ sizes: { window } }: JudgedRefusal): void {
    const { model, access } = this.#api;
    if (window !== undefined && this.#limits.learnWindow(window, model)) access.noteWindow?.(window);
  }

  #affordableAnswer({ is, sizes, refusal }: JudgedRefusal, made: Made): number | undefined {
    switch (is) {
      case 'overflow':
        return this.#fittingAnswer(sizes, made, refusal.words);
      case 'answer-limit':
        return sizes.answer !== undefined && sizes.answer < made.maxTokens
          ? sizes.answer
          : Math.floor(made.maxTokens / 2);
      case 'credit':
        return sizes.affordable === undefined ? undefined : Math.floor(sizes.affordable * 0.95);
      default:
        return undefined;
    }
  }

  /** Servers count a prompt as "at least" so much, so the first try leaves it most of the window. */
  #fittingAnswer(
    { window, prompt }: JudgedRefusal['sizes'],
    { maxTokens }: Made,
    words: string,
  ): number | undefined {
    if (window === undefined) {
      const isAboutAnswer = /completion|output|max_tokens/.test(words) && this.#cuts === 0;
      return isAboutAnswer && maxTokens > 2_048 ? 1_024 : undefined;
    }
    const share = Math.ceil(window / 4);
    if (prompt === undefined) return share < maxTokens ? share : undefined;
    const left = window - prompt - Math.max(32, Math.ceil(window / 100));
    return this.#cuts === 0 ? Math.min(left, share) : Math.min(left, Math.floor(maxTokens / 2));
  }
}

/** The failure of a request that may succeed at once when it is made again. */
function again({ detail, refusal }: ModelFailure): ModelFailure {
  return { kind: 'failed', detail, ...(refusal && { refusal }), retry: { kind: 'later', afterMs: 0 } };
}

/** How long to assume that a server still doesn't accept something, ms. */
const learnedForMs = 3_600_000;

/**
 * Knowledge about a model from its server's refusals: what it doesn't accept, for an hour; its window and
 * its longest answer, for the life of this process.
 */
class ModelLimits {
  /** Names of what isn't accepted, and when the server said so, ms since the epoch. */
  readonly #unsupported = new Map<string, number>();
  #window = Number.POSITIVE_INFINITY;
  #answer = Number.POSITIVE_INFINITY;
  #affordable = { tokens: Number.POSITIVE_INFINITY, since: 0 };

  unsupported(now: number): ReadonlySet<string> {
    return new Set([...this.#unsupported].flatMap(([name, at]) => (at > now - learnedForMs ? name : [])));
  }

  refuse(name: string, now: number): void {
    this.#unsupported.set(name, now);
  }

  /** Returns true if the window is news. */
  learnWindow(tokens: number, { contextWindow }: Pick<ModelInfo, 'contextWindow'>): boolean {
    const isNews = tokens < Math.min(this.#window, contextWindow);
    if (isNews) this.#window = tokens;
    return isNews;
  }

  learnAnswer(tokens: number): void {
    this.#answer = Math.min(this.#answer, tokens);
  }

  learnAffordable(tokens: number, now: number): void {
    this.#affordable = { tokens, since: now };
  }

  /** Longest answer to ask for, tokens. */
  longestAnswer(now: number): number {
    const { tokens, since } = this.#affordable;
    return Math.min(this.#answer, since > now - learnedForMs ? tokens : Number.POSITIVE_INFINITY);
  }

  /** Returns the model's facts as its server knows them. Most of a small window is left for the prompt. */
  applyTo<Info extends ModelInfo>(model: Info): Info {
    const contextWindow = Math.min(model.contextWindow, this.#window);
    const share =
      this.#window < model.contextWindow ? Math.ceil(contextWindow / 4) : Number.POSITIVE_INFINITY;
    return {
      ...model,
      contextWindow,
      answerTokens: Math.min(model.answerTokens, this.#answer, share),
    };
  }
}

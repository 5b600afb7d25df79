import type { ModelInfo } from '#contracts/model.ts';

/** How long to assume that a server still doesn't accept something, ms. */
const learnedForMs = 3_600_000;

/**
 * Knowledge about a model from its server's refusals: what it doesn't accept, for an hour; its window and
 * its longest answer, for the life of this process.
 */
export class ModelLimits {
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

import type { ChannelTrouble } from '#contracts/channel.ts';

/** What can be wrong at once; the first in this order is what people are told. */
const sources = ['captcha', 'connection', 'store'] as const;
type Source = (typeof sources)[number];

/** Several things may be wrong; the channel is well again when none is. */
export class ChannelHealth {
  readonly #problems = new Map<Source, string>();
  #tell: ((problem: ChannelTrouble | undefined) => void) | undefined;
  #told: string | undefined;

  /** Whoever is told from now on; undefined: nobody. */
  tellTo(tell: ((problem: ChannelTrouble | undefined) => void) | undefined): void {
    this.#tell = tell;
    this.#told = undefined;
    this.#say();
  }

  set(source: Source, problem: string | undefined): void {
    if (problem === undefined) this.#problems.delete(source);
    else this.#problems.set(source, problem);
    this.#say();
  }

  #say(): void {
    const [detail] = sources.flatMap((source) => this.#problems.get(source) ?? []);
    if (detail === this.#told) return;
    this.#told = detail;
    this.#tell?.(detail === undefined ? undefined : { kind: 'unreachable', detail });
  }
}

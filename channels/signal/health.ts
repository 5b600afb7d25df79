import type { ChannelTrouble } from '#contracts/channel.ts';

/** Problems that can coexist; the first in this order is reported. */
const sources = ['captcha', 'connection', 'store'] as const;
type Source = (typeof sources)[number];

/** Several things may be wrong; the channel is well again when none is. */
export class ChannelHealth {
  readonly #problems = new Map<Source, string>();
  #tell: ((problem: ChannelTrouble | undefined) => void) | undefined;
  #told: string | undefined;

  /** Listener from now on; undefined for none. */
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

import type { ChannelTrouble, TroubleCode } from '#contracts/channel.ts';

/** Problems that can coexist; the first in this order is reported. With `identity` alone the channel still works. */
const codes = {
  captcha: 'captcha',
  loss: 'not-stored',
  connection: 'no-answer',
  store: 'not-stored',
  identity: 'no-answer',
} as const satisfies Readonly<Record<string, TroubleCode>>;
type Source = keyof typeof codes;
const sources = Object.keys(codes) as Source[];

/** Tracks several possible problems; the channel is healthy again when there is none. */
export class ChannelHealth {
  readonly #problems = new Map<Source, string>();
  #report: ((problem: ChannelTrouble | undefined) => void) | undefined;
  #told: string | undefined;

  /** Sets the listener from now on; undefined for none. */
  tellTo(tell: ((problem: ChannelTrouble | undefined) => void) | undefined): void {
    this.#report = tell;
    this.#told = undefined;
    this.#say();
  }

  set(source: Source, problem: string | undefined): void {
    if (problem === undefined) this.#problems.delete(source);
    else this.#problems.set(source, problem);
    this.#say();
  }

  has(source: Source): boolean {
    return this.#problems.has(source);
  }

  #say(): void {
    const source = sources.find((one) => this.#problems.has(one));
    const detail = source && this.#problems.get(source);
    if (detail === this.#told) return;
    this.#told = detail;
    if (source === undefined || detail === undefined) {
      this.#report?.(undefined);
      return;
    }
    const kind = source === 'captcha' ? 'challenge' : 'unreachable';
    this.#report?.({ kind, code: codes[source], detail, ...(source === 'identity' && { isDegraded: true }) });
  }
}

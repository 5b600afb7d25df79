/** Pending faults; each is used up by as many calls as it is meant for. */
export class FaultQueue<Fault, Match extends { readonly times?: number }> {
  #waiting: { readonly fault: Fault; readonly match: Match; left: number }[] = [];

  add(fault: Fault, match: Match): void {
    this.#waiting.push({ fault, match, left: match.times ?? 1 });
  }

  clear(): void {
    this.#waiting = [];
  }

  protected next(isMeant: (match: Match) => boolean): Fault | undefined {
    const next = this.#waiting.find(({ match }) => isMeant(match));
    if (next === undefined) return undefined;
    next.left -= 1;
    if (next.left <= 0) this.#waiting = this.#waiting.filter((one) => one !== next);
    return next.fault;
  }
}

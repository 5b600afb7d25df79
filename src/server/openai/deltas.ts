/**
 * Divides a text that grows, and begins again with each message of the model, into pieces that are only ever appended:
 * a further message begins after an empty line.
 */
export class Deltas {
  #sent = '';
  #isDivided = false;

  /** Returns what to append, given the present message so far; empty if there is nothing yet. */
  take(text: string): string {
    // Half of a character waits for the other half.
    const whole = /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
    if (whole.startsWith(this.#sent) && !this.#isDivided) {
      const more = whole.slice(this.#sent.length);
      this.#sent = whole;
      return more;
    }
    this.#isDivided ||= this.#sent !== '';
    if (whole === '') return '';
    this.#sent = whole;
    this.#isDivided = false;
    return `\n\n${whole}`;
  }

  /** Returns what is still missing of the complete answer. */
  finish(text: string): string {
    return this.#sent.trimEnd() === text.trimEnd() && !this.#isDivided ? '' : this.take(text);
  }
}

/**
 * Separates the thinking that a server leaves at the beginning of an answer's text if it isn't configured for its
 * model's marks (vLLM, LM Studio, llama.cpp): `<think>…</think>`. Left in the text, it would end up in titles,
 * summaries and sub-agents' results.
 */

export type SplitText = { readonly thinking: string; readonly text: string };

const names = ['think', 'thinking', 'thought'];
const opening = new RegExp(`^\\s*<(${names.join('|')})>`);
/** If no mark has appeared after this much text, there is none, UTF-16 units. */
const longestHeld = 80;

/** Splits a text that arrives in pieces. Linear: it never holds back more than a partial mark. */
export class ThinkingSplitter {
  #state: 'unsure' | 'thinking' | 'gap' | 'text' = 'unsure';
  #held = '';
  #hasThought = false;
  #closing = '';

  take(piece: string): SplitText {
    if (this.#state === 'text') return { thinking: '', text: piece };
    const held = this.#held + piece;
    this.#held = '';
    if (this.#state === 'unsure') return this.#decide(held);
    return this.#state === 'thinking' ? this.#think(held) : this.#afterGap(held);
  }

  /** Returns the text held back, once the text ends or something else follows. */
  rest(): SplitText {
    const held = this.#held;
    this.#held = '';
    return this.#state === 'thinking'
      ? { thinking: this.#thought(held), text: '' }
      : { thinking: '', text: held };
  }

  #decide(held: string): SplitText {
    const [mark, name] = opening.exec(held) ?? [];
    if (mark !== undefined) {
      this.#state = 'thinking';
      this.#closing = `</${name}>`;
      return this.#think(held.slice(mark.length));
    }
    const begun = held.trimStart();
    if (held.length <= longestHeld && names.some((each) => `<${each}>`.startsWith(begun))) {
      this.#held = held;
      return { thinking: '', text: '' };
    }
    this.#state = 'text';
    return { thinking: '', text: held };
  }

  #think(held: string): SplitText {
    const end = held.indexOf(this.#closing);
    if (end === -1) {
      const sure = Math.max(0, held.length - this.#closing.length + 1);
      this.#held = held.slice(sure);
      return { thinking: this.#thought(held.slice(0, sure)), text: '' };
    }
    this.#state = 'gap';
    const { text } = this.#afterGap(held.slice(end + this.#closing.length));
    return { thinking: this.#thought(held.slice(0, end)), text };
  }

  /** Trims the beginning, because a model that is told not to think may write an empty block. */
  #thought(thinking: string): string {
    const worth = this.#hasThought ? thinking : thinking.trimStart();
    this.#hasThought ||= worth !== '';
    return worth;
  }

  #afterGap(held: string): SplitText {
    const text = held.trimStart();
    if (text !== '') this.#state = 'text';
    return { thinking: '', text };
  }
}

/** Returns a complete text without its thinking. */
export function withoutThinking(whole: string): string {
  const splitter = new ThinkingSplitter();
  return splitter.take(whole).text + splitter.rest().text;
}

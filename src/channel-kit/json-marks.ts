export const bracket = 0x5b;
export const closingBracket = 0x5d;
export const brace = 0x7b;
export const closingBrace = 0x7d;
export const comma = 0x2c;
export const colon = 0x3a;
const quote = 0x22;
const backslash = 0x5c;

/**
 * Finds the characters that structure JSON, those outside its strings. A parser's time depends on their number more
 * than on the length.
 */
export class JsonMarks {
  #isInString = false;
  #isEscaped = false;

  /** Takes the next byte or UTF-16 unit. Returns true if it is outside strings; quotes belong to their strings. */
  isOutside(code: number): boolean {
    if (!this.#isInString) {
      if (code !== quote) return true;
      this.#isInString = true;
    } else if (this.#isEscaped) this.#isEscaped = false;
    else if (code === backslash) this.#isEscaped = true;
    else if (code === quote) this.#isInString = false;
    return false;
  }

  /** Takes the next one, and says whether it begins a value: a bracket, a brace or a comma. */
  isMark(code: number): boolean {
    return this.isOutside(code) && (code === comma || code === bracket || code === brace);
  }
}

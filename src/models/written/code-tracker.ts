/** Follows a growing text line by line: whether it is in code, and what precedes the next sign on its line. */

const openingFence = /^[ \t]{0,3}(`{3,}|~{3,})[^\n`]*\n/;
/** Longer first lines of a fence are text, UTF-16 units. */
const maxFenceLine = 200;
const beforeMarks = /[<[◁`\n]/g;

export class CodeTracker {
  /** Marker of the open fence. */
  #fence = '';
  /** Length of the run of ticks that opened a code span on this line; 0: none. */
  #span = 0;
  #isLineStart = true;
  #line = '';
  #isLineBlank = true;
  /** The line mentions an opening tag, so its closing tag is mentioned, too. */
  isTagOpen = false;

  get isLineBlank(): boolean {
    return this.#isLineBlank;
  }

  /** The end of the current line. */
  get line(): string {
    return this.#line;
  }

  get endsSentence(): boolean {
    return /[.!?…:。！？]$/.test(this.#line);
  }

  /** A mark has ended: what follows begins a line. */
  startLine(): void {
    this.#line = '';
    this.#isLineBlank = true;
    this.#span = 0;
    this.isTagOpen = false;
  }

  /** Follows a text that was read. */
  follow(text: string): void {
    const at = text.lastIndexOf('\n');
    if (at !== -1) {
      this.startLine();
      this.#isLineStart = at === text.length - 1;
    } else if (text !== '') this.#isLineStart = false;
    const added = text.slice(at + 1);
    this.#isLineBlank &&= added.trim() === '';
    this.#line = (this.#line + added).slice(-80);
  }

  isAtMark(text: string): boolean {
    return this.#fence === '' && this.#span === 0 && /^[<[◁]/.test(text);
  }

  /** Returns how much of the text's beginning is text for certain; 0: it begins with a mark, or isn't decided yet. */
  next(text: string, isFinal: boolean): number {
    if (this.#fence !== '') return this.#inFence(text, isFinal);
    if (this.#isLineStart) {
      const fence = this.#openFence(text, isFinal);
      if (fence !== undefined) return fence;
    }
    if (text.startsWith('`')) return this.#ticks(text, isFinal);
    if (this.#span === 0 && /^[<[◁]/.test(text)) return 0;
    beforeMarks.lastIndex = 1;
    const found = text === '' ? null : beforeMarks.exec(text);
    if (found === null) return text.length;
    return found[0] === '\n' ? found.index + 1 : found.index;
  }

  #openFence(text: string, isFinal: boolean): number | undefined {
    const fence = openingFence.exec(text);
    if (fence) {
      this.#fence = fence[1] ?? '```';
      return fence[0].length;
    }
    const mayGrow =
      !isFinal &&
      text !== '' &&
      text.length <= maxFenceLine &&
      /^[ \t]{0,3}(?:[`~]{0,2}|`{3,}[^\n`]*|~{3,}[^\n]*)$/.test(text);
    return mayGrow ? 0 : undefined;
  }

  #inFence(text: string, isFinal: boolean): number {
    const lineEnd = text.indexOf('\n');
    const line = lineEnd === -1 ? text : text.slice(0, lineEnd);
    if (!this.#isLineStart) return lineEnd === -1 ? text.length : lineEnd + 1;
    if (lineEnd === -1 && !isFinal && /^[ \t]{0,3}[`~]*[ \t]*$/.test(line)) return 0;
    const isEnd = new RegExp(`^[ \\t]{0,3}${this.#fence.charAt(0)}{${this.#fence.length},}[ \\t\\r]*$`).test(
      line,
    );
    if (isEnd) this.#fence = '';
    return lineEnd === -1 ? text.length : lineEnd + 1;
  }

  #ticks(text: string, isFinal: boolean): number {
    const { length } = /^`+/.exec(text)?.[0] ?? '';
    if (length === text.length && !isFinal) return 0;
    if (this.#span === 0) this.#span = length;
    else if (this.#span === length) this.#span = 0;
    return length;
  }
}

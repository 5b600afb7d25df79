/** Calls in Python's form, as Llama 4, LFM2 and Olmo write them: `[list(path=".", depth=2)]`. */

/** A call as it was written; `input` is JSON, or what was written in its place. */
export type WrittenCall = { readonly name: string; readonly input: string };

/** Returns the calls; undefined if the text is anything else. Linear: each sign is read once. */
export function readPythonCalls(text: string): readonly WrittenCall[] | undefined {
  const reader = new PythonReader(text);
  try {
    return reader.calls();
  } catch (error) {
    if (error instanceof NotPython) return undefined;
    throw error;
  }
}

class NotPython extends Error {}

/** Deeper values aren't arguments. */
const maxDepth = 32;
const words: Readonly<Record<string, unknown>> = {
  ...{ True: true, False: false, None: null },
  ...{ true: true, false: false, null: null },
};

class PythonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  calls(): readonly WrittenCall[] {
    const isList = this.#accept('[');
    const calls: WrittenCall[] = [];
    do {
      if (isList && this.#accept(']')) return this.#ended(calls);
      calls.push(this.#call());
    } while (this.#accept(',') || (!isList && this.#rest() !== ''));
    if (isList) this.#expect(']');
    return this.#ended(calls);
  }

  #ended(calls: readonly WrittenCall[]): readonly WrittenCall[] {
    if (this.#rest() !== '') throw new NotPython();
    return calls;
  }

  #call(): WrittenCall {
    const name = this.#match(/[A-Za-z_][\w.-]{0,127}/y).replace(/\.call$/, '');
    this.#expect('(');
    const input: Record<string, unknown> = {};
    while (!this.#accept(')')) {
      const key = this.#match(/[A-Za-z_]\w{0,127}/y);
      this.#expect('=');
      Object.defineProperty(input, key, { value: this.#value(0), enumerable: true, configurable: true });
      if (!this.#accept(',')) {
        this.#expect(')');
        break;
      }
    }
    return { name, input: JSON.stringify(input) };
  }

  #value(depth: number): unknown {
    if (depth > maxDepth) throw new NotPython();
    if (this.#accept('[')) return this.#list(depth);
    if (this.#accept('{')) return this.#record(depth);
    const sign = this.#rest().charAt(0);
    if (sign === '"' || sign === "'") return this.#string(sign);
    const word = this.#match(/-?\d[\d_]*(?:\.\d*)?(?:e[+-]?\d+)?|[A-Za-z]+/iy);
    if (Object.hasOwn(words, word)) return words[word];
    const number = Number(word.replaceAll('_', ''));
    if (!Number.isFinite(number)) throw new NotPython();
    return number;
  }

  #list(depth: number): unknown {
    const items: unknown[] = [];
    while (!this.#accept(']')) {
      items.push(this.#value(depth + 1));
      if (!this.#accept(',')) {
        this.#expect(']');
        break;
      }
    }
    return items;
  }

  #record(depth: number): unknown {
    const entries: [string, unknown][] = [];
    while (!this.#accept('}')) {
      const key = String(this.#value(depth + 1));
      this.#expect(':');
      entries.push([key, this.#value(depth + 1)]);
      if (!this.#accept(',')) {
        this.#expect('}');
        break;
      }
    }
    return Object.fromEntries(entries);
  }

  #string(quote: string): string {
    const found = this.#match(quote === '"' ? /"(?:[^"\\]|\\[\s\S])*"/y : /'(?:[^'\\]|\\[\s\S])*'/y);
    const escapes: Record<string, string> = { n: '\n', t: '\t', r: '\r' };
    return found.slice(1, -1).replace(/\\([\s\S])/g, (_, sign: string) => escapes[sign] ?? sign);
  }

  #rest(): string {
    this.#skip();
    return this.#text.slice(this.#at, this.#at + 1);
  }

  #skip(): void {
    while (/\s/.test(this.#text.charAt(this.#at))) this.#at += 1;
  }

  #accept(sign: string): boolean {
    this.#skip();
    if (this.#text.charAt(this.#at) !== sign) return false;
    this.#at += 1;
    return true;
  }

  #expect(sign: string): void {
    if (!this.#accept(sign)) throw new NotPython();
  }

  #match(pattern: RegExp): string {
    this.#skip();
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) throw new NotPython();
    this.#at += found.length;
    return found;
  }
}

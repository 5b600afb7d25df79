/**
 * Calls without any mark, as Llama and Phi write them: the whole answer is a call of a tool that was offered, as JSON or
 * in Python's form. Held back to its end, since the same beginning may be an answer in JSON.
 */
import type { ToolSpec } from '#contracts/model.ts';
import type { WrittenCall } from './python-calls.ts';
import { readCalls } from './written-calls.ts';

const mayBeJson =
  /^(?:functools\s*)?(?:\[\s*)?(?:\{\s*(?:"(?:[a-z_]{0,10}|(?:name|type|function|tool_name|tool|id)"[\s\S]*))?)?$/;
/** Longer answers aren't calls, UTF-16 units. */
const maxLength = 400_000;

export class BareCall {
  readonly #tools: readonly ToolSpec[];
  isOpen = false;

  constructor(tools: readonly ToolSpec[]) {
    this.#tools = tools;
  }

  /** Says whether the answer may be a call. Decided once: by its first signs, or when it is too long. */
  mayBegin(written: string, isStart: boolean): boolean {
    if (this.#tools.length === 0 || (!isStart && !this.isOpen)) return false;
    if (this.isOpen) this.isOpen = written.length <= maxLength;
    else {
      const begun = written.trimStart();
      const isUndecided = begun.length < 60;
      const mayBe =
        begun !== '' && (mayBeJson.test(begun) || 'functools['.startsWith(begun) || this.#isPython(begun));
      // From here on more text can't change the decision.
      this.isOpen = mayBe && (!isUndecided || /"[a-z_]+"|\(/.test(begun));
      return mayBe;
    }
    return this.isOpen;
  }

  #isPython(begun: string): boolean {
    const [, name = '', paren] = /^\[\s*([A-Za-z_][\w.-]*)?(\()?/.exec(begun) ?? [];
    if (!begun.startsWith('[') || name === '') return false;
    if (paren !== undefined) return this.#tools.some((tool) => tool.name === name);
    return /^\[\s*[A-Za-z_][\w.-]*$/.test(begun) && this.#tools.some((tool) => tool.name.startsWith(name));
  }

  /** Returns the calls that the whole answer is; undefined if it is anything else. */
  read(written: string): readonly WrittenCall[] | undefined {
    if (!this.isOpen) return undefined;
    this.isOpen = false;
    if (!/[}\])]\s*;?\s*$/.test(written)) return undefined;
    const calls = readCalls(written.trim(), this.#tools);
    const areOffered = calls?.every(({ name }) => this.#tools.some((tool) => tool.name === name));
    return areOffered ? calls : undefined;
  }
}

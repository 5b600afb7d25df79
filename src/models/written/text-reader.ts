/** Separates what a model wrote into text, reasoning and tool calls, while it arrives. See grammars.ts. */
import type { ToolSpec } from '#contracts/model.ts';
import { isMentioned, mentionLength } from '../../texts/mentioned-mark.ts';
import { CodeTracker } from './code-tracker.ts';
import * as grammar from './grammars.ts';
import type { WrittenCall } from './python-calls.ts';
import { nameIn, readCalls } from './written-calls.ts';

/** `recall`: all text so far was reasoning, whose opening mark the server had put into the prompt. */
export type Written =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly thinking: string }
  | ({ readonly kind: 'call' } & WrittenCall)
  | { readonly kind: 'recall' };

type State =
  | { readonly kind: 'text' }
  | { readonly kind: 'thinking'; readonly close: RegExp; isComment?: true }
  /** `name`: given by a Harmony header. */
  | {
      readonly kind: 'call';
      readonly close: RegExp | undefined;
      readonly name?: string;
      read: string;
      from: number;
      tries: number;
    }
  | { readonly kind: 'skip'; readonly close: RegExp }
  | { readonly kind: 'header' }
  | { readonly kind: 'over' };

const inText: State = { kind: 'text' };
/** How often the end of a call is looked for again, because its arguments contain the closing mark. */
const maxTries = 8;
/** Longer calls aren't run, UTF-16 units; the draft accepts less. */
const maxCallLength = 2_000_000;

/** Reads one answer. Linear: what is held back for the next piece is bounded, except for calls. */
export class TextReader {
  readonly #tools: readonly ToolSpec[];
  readonly #code = new CodeTracker();
  readonly #bare: BareCall;
  #state: State = inText;
  #buffer = '';
  #out: Written[] = [];
  /** Line breaks that are only part of the text if more text follows. */
  #gap = '';
  #hasSaid = false;
  #hasThought = false;
  #hasMarks = false;
  /** Reasoning after a closing mark that may only be mentioned in it. */
  #maybeText: string | undefined;
  /** Reasoning of the block that is open, for a model that calls a tool without closing it. */
  #unclosed = '';
  /** Harmony's commentary, which is the answer if nothing else is. */
  #comment = '';
  #calls = 0;

  constructor(tools: readonly ToolSpec[]) {
    this.#tools = tools;
    this.#bare = new BareCall(tools);
  }

  take(piece: string): readonly Written[] {
    if (this.#state.kind === 'over') return [];
    this.#buffer += piece;
    if (this.#bare.mayBegin(this.#buffer, !this.#hasSaid && !this.#hasMarks && this.#gap === '')) return [];
    return this.#read(false);
  }

  /** Returns what is held back, because something other than text follows. */
  flush(): readonly Written[] {
    return this.#bare.isOpen || this.#state.kind !== 'text' ? [] : this.#read(true);
  }

  /** Returns the rest of the answer. */
  end(): readonly Written[] {
    const bare = this.#bare.read(this.#buffer);
    if (bare !== undefined) return bare.map((call) => ({ kind: 'call', ...call }));
    const out = [...this.#read(true)];
    this.#finish();
    return [...out, ...this.#out.splice(0)];
  }

  #read(isFinal: boolean): readonly Written[] {
    while (this.#step(isFinal));
    return this.#out.splice(0);
  }

  /** Reads as far as the state reaches; false if it needs more text. */
  #step(isFinal: boolean): boolean {
    const state = this.#state;
    switch (state.kind) {
      case 'text':
        return this.#readText(isFinal);
      case 'thinking':
        return this.#readThinking(state, isFinal);
      case 'call':
        return this.#readCall(state);
      case 'header':
        return this.#readHeader(isFinal);
      case 'skip':
        return this.#skip(state.close);
      default:
        this.#buffer = '';
        return false;
    }
  }

  #readText(isFinal: boolean): boolean {
    if (!this.#hasSaid && !this.#hasMarks && this.#readBareHarmony(isFinal))
      return this.#state.kind !== 'text';
    const plain = this.#code.next(this.#buffer, isFinal);
    if (plain > 0) {
      this.#say(this.#eat(plain));
      return this.#buffer !== '';
    }
    if (this.#buffer === '' || !this.#code.isAtMark(this.#buffer)) return false;
    const mark = this.#readMark(isFinal);
    if (mark === 'none') this.#say(this.#eat(1));
    return mark !== 'wait';
  }

  /** `analysis…assistantfinal…`: Harmony whose tokens the server has dropped. True if it began, or still may. */
  #readBareHarmony(isFinal: boolean): boolean {
    const begun = this.#buffer.trimStart();
    if (/^analysis(?=\p{Lu})/u.test(begun)) {
      this.#eat(this.#buffer.length - begun.length + 'analysis'.length);
      this.#think({ kind: 'thinking', close: /assistant(?:commentary)?final/ });
      return true;
    }
    // Blanks in front are held too: they are part of the answer only if it turns out not to be Harmony.
    return !isFinal && this.#buffer.length <= maxHeld && 'analysis'.startsWith(begun);
  }

  /** Reads the mark that the buffer begins with. */
  #readMark(isFinal: boolean): 'read' | 'wait' | 'none' {
    const rest = this.#buffer;
    const isLineBlank = this.#code.isLineBlank;
    const found = (pattern: RegExp) => matchStart(pattern, rest);
    const mayGrow = !isFinal && rest.length <= maxHeld && grammar.unfinishedMark.test(rest);
    if (mayGrow) return 'wait';
    if (rest.length <= maxHeld && grammar.lastTokens.test(rest)) {
      if (isFinal) this.#eat(rest.length);
      return isFinal ? 'read' : 'wait';
    }
    const speaker = found(grammar.nextSpeaker);
    if (speaker && this.#isMentioned(speaker[0].length, isFinal) === false)
      return this.#enter('', { kind: 'over' });
    const token = found(grammar.harmonyHeader) ?? found(grammar.specialToken);
    if (token) {
      const mention = this.#isMentioned(token[0].length, isFinal);
      if (mention !== false) return mention === 'wait' ? 'wait' : 'none';
      if (matchStart(grammar.harmonyHeader, rest)) return this.#enter('', { kind: 'header' });
      this.#eat(token[0].length);
      this.#hasMarks = true;
      this.#code.startLine();
      return 'read';
    }
    const block = found(grammar.resultBlock);
    if (block && isLineBlank)
      return this.#enter(block[0], { kind: 'skip', close: closing('</$1\\s?>', block[1]) });
    return this.#readReasoningMark(isFinal) ?? this.#readCallMark(isFinal) ?? 'none';
  }

  #readReasoningMark(isFinal: boolean): 'read' | 'wait' | 'none' | undefined {
    for (const { open, close, where } of grammar.reasoningGrammars) {
      const opened = matchStart(open, this.#buffer);
      if (opened) {
        const counts = where === 'anywhere' || this.#code.isLineBlank || this.#code.endsSentence;
        if (!counts) this.#code.isTagOpen = true;
        const source = opened[1] === undefined ? close.source : `</(?:\\w{1,12}:)?${opened[1]}\\s?>`;
        return counts ? this.#enter(opened[0], { kind: 'thinking', close: new RegExp(source, 'i') }) : 'none';
      }
      const closed = matchStart(close, this.#buffer);
      if (!closed) continue;
      if (this.#code.isTagOpen) return 'none';
      const mention = this.#isMentioned(closed[0].length, isFinal);
      if (mention !== false) return mention === 'wait' ? 'wait' : 'none';
      if (this.#hasSaid) this.#out.push({ kind: 'recall' });
      this.#hasSaid = false;
      this.#gap = '';
      return this.#enter(closed[0], inText);
    }
    return undefined;
  }

  #readCallMark(isFinal: boolean): 'read' | 'wait' | undefined {
    for (const { open, close, where, follows } of grammar.callGrammars) {
      const opened = matchStart(open, this.#buffer);
      if (!opened) continue;
      const after = this.#buffer.slice(opened[0].length);
      if (where === 'line' && !this.#code.isLineBlank) {
        if (!isFinal && after.length < maxHeld && /^\s*[\w.-]*\s*(?:<[\w_]{0,7})?$/.test(after))
          return 'wait';
        if (!follows || !matchStart(follows, after)) return undefined;
      } else if (where === 'anywhere') {
        const mention = this.#isMentioned(opened[0].length, isFinal);
        if (mention !== false) return mention === 'wait' ? 'wait' : undefined;
      }
      const end = close === undefined ? undefined : closing(close, opened[1]);
      return this.#enter('', { kind: 'call', close: end, read: '', from: 0, tries: 0 });
    }
    return undefined;
  }

  /** Consumes the mark and continues in another state. */
  #enter(mark: string, state: State): 'read' {
    this.#eat(mark.length);
    this.#hasMarks = true;
    if (!this.#hasSaid) this.#gap = '';
    this.#code.startLine();
    if (state.kind === 'thinking') this.#think(state);
    else this.#state = state;
    return 'read';
  }

  #think(state: State): void {
    this.#state = state;
    this.#hasMarks = true;
    this.#maybeText = undefined;
    this.#unclosed = '';
  }

  #readThinking(state: Extract<State, { kind: 'thinking' }>, isFinal: boolean): boolean {
    const end = state.close.exec(this.#buffer);
    if (end === null) {
      this.#thinkOn(this.#eat(isFinal ? this.#buffer.length : certainLength(this.#buffer)), state);
      return false;
    }
    this.#thinkOn(this.#eat(end.index), state);
    const [closed] = end;
    const mention = closed.startsWith('</') && this.#isMentioned(closed.length, isFinal);
    if (mention === 'wait') return false;
    if (mention === true) {
      this.#thinkOn(this.#eat(closed.length), state);
      this.#maybeText ??= '';
      return true;
    }
    this.#closeThinking();
    // Harmony's next header begins with the mark that ended this channel.
    const isHeader = closed === '<|start|>' || closed === '<|channel|>';
    if (!isHeader) this.#eat(closed.length);
    this.#state = isHeader ? { kind: 'header' } : inText;
    this.#code.startLine();
    return true;
  }

  #thinkOn(thinking: string, { isComment }: Extract<State, { kind: 'thinking' }>): void {
    if (thinking === '') return;
    this.#code.follow(thinking);
    if (isComment) this.#comment += thinking;
    this.#unclosed += thinking;
    if (this.#maybeText === undefined) this.#emitThinking(thinking);
    else this.#maybeText += thinking;
  }

  /** Trims the beginning, because a model that is told not to think may write an empty block. */
  #emitThinking(thinking: string): void {
    const worth = this.#hasThought ? thinking : thinking.trimStart();
    this.#hasThought ||= worth !== '';
    if (worth !== '') this.#out.push({ kind: 'thinking', thinking: worth });
  }

  #closeThinking(): void {
    if (this.#maybeText !== undefined) this.#emitThinking(this.#maybeText);
    this.#maybeText = undefined;
    this.#unclosed = '';
  }

  #readHeader(isFinal: boolean): boolean {
    const found = grammar.harmonyBody.exec(this.#buffer);
    if (found === null) {
      if (!isFinal && this.#buffer.length <= maxHeld) return false;
      this.#eat(matchStart(grammar.harmonyHeader, this.#buffer)?.[0].length ?? 0);
      this.#state = inText;
      return true;
    }
    const header = this.#eat(found.index + found[0].length);
    const channel = /<\|channel\|>\s*(\w+)/.exec(header)?.[1] ?? 'final';
    const name = /\bto=([\w.:-]{1,128})/.exec(header)?.[1];
    if (name !== undefined && name !== 'user' && name !== 'assistant')
      this.#state = { kind: 'call', close: grammar.harmonyEnd, name, read: '', from: 0, tries: maxTries };
    else if (channel === 'analysis') this.#think({ kind: 'thinking', close: grammar.harmonyEnd });
    else if (channel === 'commentary')
      this.#think({ kind: 'thinking', close: grammar.harmonyEnd, isComment: true });
    else this.#state = inText;
    this.#hasMarks = true;
    this.#code.startLine();
    return true;
  }

  #readCall(state: Extract<State, { kind: 'call' }>): boolean {
    if (state.read.length < maxCallLength) state.read += this.#buffer;
    this.#buffer = '';
    if (state.close === undefined) return false;
    const close = new RegExp(state.close.source, 'gi');
    close.lastIndex = state.from;
    const end = close.exec(state.read);
    if (end === null) {
      state.from = Math.max(state.from, state.read.length - maxHeld);
      return false;
    }
    const upTo = end.index + end[0].length;
    const isHeader = end[0] === '<|start|>' || end[0] === '<|channel|>';
    const written = state.read.slice(0, state.name === undefined ? upTo : end.index);
    if (!this.#call(written, state) && state.tries < maxTries) {
      state.tries += 1;
      state.from = upTo;
      return true;
    }
    this.#buffer = state.read.slice(isHeader ? end.index : upTo);
    this.#state = isHeader ? { kind: 'header' } : inText;
    this.#code.startLine();
    return true;
  }

  /** Reports the calls that were written; false if they can't be read. */
  #call(written: string, { name }: Pick<Extract<State, { kind: 'call' }>, 'name'>): boolean {
    const calls =
      name === undefined
        ? readCalls(written, this.#tools)
        : [{ name: name.replace(/^functions\./, ''), input: written.trim() || '{}' }];
    for (const call of calls ?? []) this.#out.push({ kind: 'call', ...call });
    this.#calls += calls?.length ?? 0;
    return calls !== undefined;
  }

  #skip(close: RegExp): boolean {
    const end = close.exec(this.#buffer);
    this.#eat(end === null ? certainLength(this.#buffer) : end.index + end[0].length);
    if (end !== null) this.#state = inText;
    return end !== null;
  }

  #finish(): void {
    const state = this.#state;
    if (state.kind === 'call') this.#finishCall(state);
    if (state.kind === 'thinking') this.#finishThinking();
    if (this.#comment !== '' && !this.#hasSaid && this.#calls === 0) this.#sayNow(this.#comment);
    else if (!this.#hasMarks && this.#gap !== '') this.#sayNow(this.#gap);
    this.#state = { kind: 'over' };
  }

  /** A call that can't be read is reported under the name that it has, so that the model is told about it. */
  #finishCall(state: Extract<State, { kind: 'call' }>): void {
    const { read } = state;
    if (this.#call(read, state)) return;
    const named = nameIn(read);
    if (named !== undefined) this.#out.push({ kind: 'call', name: named, input: read.slice(0, 2_000) });
  }

  #finishThinking(): void {
    if (this.#maybeText !== undefined) this.#sayNow(this.#maybeText.trimStart());
    if (this.#maybeText !== undefined || this.#hasSaid || this.#calls > 0) return;
    const at = this.#unclosed.search(
      /^[ \t]*<(?:tool_call|function=|(?:\w{1,12}:)?(?:function_calls|invoke|tool_call)|[|｜‖])/m,
    );
    if (at !== -1) this.#call(this.#unclosed.slice(at).trim(), {});
  }

  #say(text: string): void {
    this.#code.follow(text);
    const rest = this.#hasSaid || !this.#hasMarks ? text : text.trimStart();
    if (this.#gap !== '' && rest.trim() === '') {
      // Not read again with each further line break.
      this.#gap += rest;
      return;
    }
    const written = this.#gap + rest;
    const said = written.trimEnd().length;
    const lineEnd = written.indexOf('\n', said);
    const length = lineEnd === -1 ? written.length : lineEnd;
    this.#gap = written.slice(length);
    this.#sayNow(written.slice(0, length));
  }

  #sayNow(text: string): void {
    if (text === '') return;
    this.#hasSaid ||= text.trim() !== '';
    this.#out.push({ kind: 'text', text });
  }

  #eat(length: number): string {
    const eaten = this.#buffer.slice(0, length);
    this.#buffer = this.#buffer.slice(length);
    return eaten;
  }

  /** Says whether a sentence mentions the mark that the buffer begins with. */
  #isMentioned(length: number, isFinal: boolean): boolean | 'wait' {
    const after = this.#buffer.slice(length, length + mentionLength);
    return isMentioned({ before: this.#code.line, after }, isFinal);
  }
}

/**
 * Calls without any mark, as Llama and Phi write them: the whole answer is a call of a tool that was offered, as JSON or
 * in Python's form. Held back to its end, since the same beginning may be an answer in JSON.
 */
const mayBeJson =
  /^(?:functools\s*)?(?:\[\s*)?(?:\{\s*(?:"(?:[a-z_]{0,10}|(?:name|type|function|tool_name|tool|id)"[\s\S]*))?)?$/;
/** Longer answers aren't calls, UTF-16 units. */
const maxLength = 400_000;

class BareCall {
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

/** Longest part of a mark that isn't complete yet, and longest Harmony header, UTF-16 units. */
const maxHeld = 320;

/** Returns how much of a text can't become a part of a closing mark. */
function certainLength(text: string): number {
  const tail = Math.max(
    text.lastIndexOf('<'),
    text.lastIndexOf('['),
    text.lastIndexOf('◁'),
    text.lastIndexOf('assistant'),
  );
  const partOfWord = /a(?:s(?:s(?:i(?:s(?:t(?:a(?:n)?)?)?)?)?)?)?$/.exec(text)?.index ?? text.length;
  return tail === -1 || text.length - tail > maxHeld ? partOfWord : Math.min(tail, partOfWord);
}

/** Returns the pattern of a mark's end; `$1` in it is the name that the mark began with. */
function closing(pattern: string, name: string | undefined): RegExp {
  return new RegExp(pattern.replaceAll('$1', (name ?? '').replace(/[^\w:-]/g, '')), 'i');
}

/** Matches a sticky pattern at the beginning of a text. */
function matchStart(pattern: RegExp, text: string): RegExpExecArray | undefined {
  pattern.lastIndex = 0;
  return pattern.exec(text) ?? undefined;
}

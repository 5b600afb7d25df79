/** Reads tool calls that a model wrote as text, in any of the forms of grammars.ts. */
import type { ToolSpec } from '#contracts/model.ts';
import { readPythonCalls, type WrittenCall } from './python-calls.ts';

/** Far more than an answer may make. */
const maxCalls = 200;

/**
 * Returns the calls in a text that is nothing but calls, marks included; undefined if they can't be read. Each form is
 * read in one pass.
 */
export function readCalls(written: string, tools: readonly ToolSpec[]): readonly WrittenCall[] | undefined {
  for (const read of [
    readInvokes,
    readFunctions,
    readArgumentKeys,
    readJsonCalls,
    readNamedJson,
    readPython,
  ]) {
    const calls = read(written, tools)?.slice(0, maxCalls);
    if (calls && calls.length > 0)
      return calls.map(({ name, input }) => ({ name: offeredName(name, tools), input }));
  }
  return undefined;
}

/** Returns the name of the tool that was meant: models add the namespace that their template shows them. */
function offeredName(written: string, tools: readonly ToolSpec[]): string {
  const name = written.trim();
  const isOffered = (each: string) => tools.some((tool) => tool.name === each);
  if (isOffered(name)) return name;
  const bare = name.replace(/^(?:functions?|tools?|default_api)[.:]/, '').replace(/:\d{1,4}$/, '');
  return bare;
}

/** DSML, MiniMax, Claude: `<invoke name="list"><parameter name="path">.</parameter></invoke>`. */
function readInvokes(written: string, tools: readonly ToolSpec[]): readonly WrittenCall[] | undefined {
  const calls: WrittenCall[] = [];
  for (const { head, body } of elements(written, 'invoke')) {
    const name = attribute(head, 'name');
    if (name === undefined) return undefined;
    const input: Record<string, unknown> = {};
    for (const parameter of elements(body, 'parameter')) {
      const key = attribute(parameter.head, 'name');
      if (key === undefined) return undefined;
      const kind = attribute(parameter.head, 'string');
      const type = kind === 'true' ? 'string' : kind === 'false' ? undefined : typeOf(name, key, tools);
      setOwn(input, key, argumentOf(parameter.body, type));
    }
    calls.push({ name, input: JSON.stringify(input) });
  }
  return calls;
}

/** Qwen3-coder and Llama: `<function=list><parameter=path>.</parameter></function>`, or JSON inside. */
function readFunctions(written: string, tools: readonly ToolSpec[]): readonly WrittenCall[] | undefined {
  const calls: WrittenCall[] = [];
  for (const piece of written.split('<function=').slice(1)) {
    const name = /^[\w.:-]{1,128}/.exec(piece)?.[0];
    if (name === undefined) return undefined;
    const end = piece.search(/<\/function\s?>/);
    const body = piece.slice(name.length, end === -1 ? undefined : end).replace(/^\s*[>,(]/, '');
    const input: Record<string, unknown> = {};
    const parameters = body.split('<parameter=').slice(1);
    for (const parameter of parameters) {
      const key = /^[^>\s]{1,128}/.exec(parameter)?.[0];
      const from = parameter.indexOf('>');
      if (key === undefined || from === -1) return undefined;
      const until = parameter.indexOf('</parameter');
      const raw = parameter.slice(from + 1, until === -1 ? undefined : until);
      setOwn(input, key, argumentOf(raw.replace(/^\n/, '').replace(/\n$/, ''), typeOf(name, key, tools)));
    }
    const rest = body.replace(/[)>\s]+$/, '').trim();
    if (parameters.length > 0) calls.push({ name, input: JSON.stringify(input) });
    else calls.push({ name, input: rest === '' ? '{}' : (firstJson(rest)?.json ?? rest) });
  }
  return calls;
}

/** GLM: `<tool_call>list<arg_key>path</arg_key><arg_value>.</arg_value></tool_call>`. */
function readArgumentKeys(written: string, tools: readonly ToolSpec[]): readonly WrittenCall[] | undefined {
  if (!written.includes('<arg_key>') && !/^<tool_call>\s*[\w.-]{1,64}\s*(?:<\/tool_call>)?\s*$/.test(written))
    return undefined;
  const calls: WrittenCall[] = [];
  for (const piece of written.split('<tool_call>').slice(1)) {
    const name = /^\s*([\w.-]{1,128})/.exec(piece)?.[1];
    if (name === undefined) return undefined;
    const input: Record<string, unknown> = {};
    for (const pair of piece.split('<arg_key>').slice(1)) {
      const [key = '', rest = ''] = pair.split('</arg_key>', 2);
      const from = rest.indexOf('<arg_value>');
      const until = rest.indexOf('</arg_value>');
      if (from === -1) return undefined;
      const raw = rest.slice(from + '<arg_value>'.length, until === -1 ? undefined : until);
      setOwn(input, key.trim(), argumentOf(raw, typeOf(name, key.trim(), tools)));
    }
    calls.push({ name, input: JSON.stringify(input) });
  }
  return calls;
}

const marks =
  /<\/?[|｜][^<>|｜]{1,40}[|｜]\/?>|\[(?:TOOL_CALLS|ARGS)\]|\[CALL_ID\][\w-]{0,64}|<\/?(?:\w{1,12}:)?(?:tool_calls?|toolcall|function_calls?|tool_use)>|^functools|<[|]?tool_call[|]?>/gi;

/** Hermes and most others: `{"name": "list", "arguments": {"path": "."}}`, alone, in a row or in a list. */
function readJsonCalls(written: string): readonly WrittenCall[] | undefined {
  const first = written.search(/[{[]\s*["{[\]}]/);
  if (first === -1) return undefined;
  const before = written.slice(0, first).replace(marks, '').trim();
  if (before !== '') return undefined;
  const calls: WrittenCall[] = [];
  let rest = written.slice(first);
  while (/^\s*[{[]/.test(rest)) {
    const found = firstJson(rest);
    if (found === undefined) return undefined;
    const named = callsIn(found.value);
    if (named === undefined) return undefined;
    calls.push(...named);
    if (calls.length > maxCalls) break;
    rest = rest.slice(found.length).replace(/^[\s;,}]+/, '');
    const next = rest.search(/[{[]\s*["{]/);
    if (next === -1) break;
    rest = rest.slice(next);
  }
  return calls;
}

/** Returns the calls that a JSON value is: an object with a name and arguments, or a list of such. */
function callsIn(value: unknown): readonly WrittenCall[] | undefined {
  if (Array.isArray(value)) {
    const all = value.map(callsIn);
    return all.every((each) => each !== undefined) ? all.flat() : undefined;
  }
  if (!isRecord(value)) return undefined;
  const { function: called } = value;
  if (isRecord(called)) return callsIn(called);
  const name = [value.name, value.tool_name, value.tool, called].find((each) => typeof each === 'string');
  const given = ['arguments', 'parameters', 'args', 'input'].find((key) => Object.hasOwn(value, key));
  if (typeof name !== 'string' || name === '') return undefined;
  const input = given === undefined ? {} : value[given];
  return [{ name, input: typeof input === 'string' ? input : JSON.stringify(input ?? {}) }];
}

/** DeepSeek, Kimi, Mistral: a name, a mark, JSON. */
function readNamedJson(written: string): readonly WrittenCall[] | undefined {
  const calls: WrittenCall[] = [];
  let name: string | undefined;
  for (const piece of written.replace(/```(?:json)?/g, '').split(marks)) {
    const said = piece.trim();
    const [, named = '', rest = ''] = /^([\w.:-]{0,128})\s*([{[][\s\S]*)?$/.exec(said) ?? [];
    if (named === '' && rest === '' && said !== '') return undefined;
    if (named !== '') name = named;
    if (rest === '') continue;
    if (name === undefined) return undefined;
    calls.push({ name, input: firstJson(rest)?.json ?? rest });
    name = undefined;
  }
  return calls;
}

function readPython(written: string): readonly WrittenCall[] | undefined {
  const inner = written.replace(marks, '').trim();
  return readPythonCalls(inner);
}

/** Returns the tool's name in a call that can't be read. */
export function nameIn(written: string): string | undefined {
  const found = /"name"\s*:\s*"([^"]{1,128})"|\bname\s*=\s*"([^"]{1,128})"|<function=([\w.:-]{1,128})/.exec(
    written,
  );
  return found?.slice(1).find((name) => name !== undefined);
}

type Element = { readonly head: string; readonly body: string };

/** Returns the elements of a name, whatever stands before it in the tag: a namespace, or DeepSeek's bars. */
function* elements(text: string, name: string): Generator<Element> {
  const open = new RegExp(`<[^<>/\\s"]{0,16}?${name}(?=[\\s>])([^<>]{0,300})>`, 'g');
  const close = new RegExp(`</[^<>\\s"]{0,16}?${name}\\s?>`, 'g');
  for (let at = open.exec(text); at !== null; at = open.exec(text)) {
    close.lastIndex = open.lastIndex;
    const end = close.exec(text);
    yield { head: at[1] ?? '', body: text.slice(open.lastIndex, end?.index) };
    open.lastIndex = end === null ? text.length : close.lastIndex;
  }
}

function attribute(head: string, name: string): string | undefined {
  const found = new RegExp(`(?:^|\\s)${name}\\s?=\\s?(?:"([^"]*)"|'([^']*)'|([^\\s"']+))`).exec(head);
  return found?.[1] ?? found?.[2] ?? found?.[3];
}

/** Returns the type that the tool's schema gives an argument; undefined if it gives none, or several. */
function typeOf(name: string, key: string, tools: readonly ToolSpec[]): string | undefined {
  const { properties } = tools.find((tool) => tool.name === offeredName(name, tools))?.inputSchema ?? {};
  const schema = isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
  return isRecord(schema) && typeof schema.type === 'string' ? schema.type : undefined;
}

/** Converts an argument that was written as text. */
function argumentOf(raw: string, type: string | undefined): unknown {
  if (type === 'string') return raw;
  const said = raw.trim();
  const known: Record<string, unknown> = { True: true, False: false, None: null };
  if (Object.hasOwn(known, said)) return known[said];
  if (!/^(?:[{["]|-?\d|true$|false$|null$)/.test(said)) return raw;
  try {
    return JSON.parse(said);
  } catch {
    return raw;
  }
}

type FoundJson = { readonly value: unknown; readonly json: string; readonly length: number };

/** Returns the JSON value that a text begins with. Line breaks in strings and missing brackets at the end are repaired. */
function firstJson(text: string): FoundJson | undefined {
  const { length, missing } = endOfJson(text);
  // The mark that ends the call follows where the bracket is missing.
  const taken = text.slice(0, length).replace(missing === '' ? /$/ : /(?:<[^<>"'{}]{1,60}>\s*)+$/, '');
  for (const json of [taken, `${repairStrings(taken)}${missing}`]) {
    try {
      return { value: JSON.parse(json), json: json.trim(), length };
    } catch {
      // The next form may be readable.
    }
  }
  return undefined;
}

/** Finds where the first bracketed value ends, and which brackets it lacks. Linear. */
function endOfJson(text: string): { readonly length: number; readonly missing: string } {
  const open: string[] = [];
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (isInString) {
      if (sign === '\\') at += 1;
      else if (sign === '"') isInString = false;
    } else if (sign === '"') isInString = true;
    else if (sign === '{') open.push('}');
    else if (sign === '[') open.push(']');
    else if (sign === '}' || sign === ']') {
      open.pop();
      if (open.length === 0) return { length: at + 1, missing: '' };
    }
  }
  return { length: text.length, missing: isInString ? '' : open.reverse().join('') };
}

/** Escapes line breaks and tabs inside strings, which models forget in long arguments. */
function repairStrings(json: string): string {
  const escapes: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
  return json.replace(/"(?:[^"\\]|\\[\s\S])*"/g, (text) =>
    text.replace(/[\n\r\t]/g, (sign) => escapes[sign] ?? sign),
  );
}

function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Applies an edit where its words match the syntax: token by token, inside one top-level declaration. */
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import jsTokens from 'js-tokens';
import { parseSync } from 'rolldown/utils';
import type { Edit } from './mutants.ts';

/** Returns the text of each file that the edits change. Throws if one of them matches nowhere, or in several places. */
export type Mutator = (edits: readonly Edit[]) => ReadonlyMap<string, string>;

type Token = { readonly value: string; readonly start: number; readonly end: number };
/** The text to replace: from `start` to `end` of its file. */
type Place = {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
};
type Bindings = ReadonlyMap<string, string>;
type Statement = ReturnType<typeof parseSync>['program']['body'][number];
/** A top-level declaration, from `start` to `end` in the text of its file. */
type Declaration = {
  readonly name: string;
  readonly file: string;
  readonly text: string;
  readonly start: number;
  readonly end: number;
};

/** Reads the sources below `root`. */
export async function createMutator(root: string): Promise<Mutator> {
  const sources = new Map<string, string>();
  const declared = new Map<string, Declaration[]>();
  for await (const file of glob(['{src,channels,plugins}/**/*.ts', 'src/client/*.js'], { cwd: root })) {
    const text = await readFile(join(root, file), 'utf8');
    sources.set(file, text);
    for (const one of declarationsOf(file, text))
      declared.set(one.name, [...(declared.get(one.name) ?? []), one]);
  }
  return (edits) => {
    const changed = new Map<string, string>();
    for (const edit of edits) {
      const known = (declared.get(edit.in) ?? []).filter(({ file }) => !changed.has(file));
      const moved = [...changed].flatMap(([file, text]) => declarationsOf(file, text));
      const places = [...known, ...moved.filter(({ name }) => name === edit.in)].flatMap((declaration) =>
        findPlaces(declaration, edit),
      );
      const [place] = places;
      if (place === undefined || places.length > 1) throw new Error(tellMisfit(edit, places));
      const text = changed.get(place.file) ?? sources.get(place.file) ?? '';
      changed.set(place.file, text.slice(0, place.start) + place.replacement + text.slice(place.end));
    }
    for (const [file, text] of changed) {
      const [error] = parseSync(file, text, { lang: 'ts' }).errors;
      if (error) throw new Error(`${file} does not parse: ${error.message}`);
    }
    return changed;
  };
}

function tellMisfit(edit: Edit, places: readonly Place[]): string {
  const where =
    places.length === 0 ? 'matches nothing' : `matches in ${places.map(({ file }) => file).join()}`;
  return `${edit.in}: ${where}, it has to match once: ${edit.change}`;
}

function findPlaces(declaration: Declaration, { change }: Edit): readonly Place[] {
  const start = /^omit (.+)$/.exec(change)?.[1];
  if (start !== undefined) {
    return matchesOf(start, declaration).flatMap((match) => findOmitted(declaration, match.start) ?? []);
  }
  const [find = '', replace = ''] = change.split(/ →(?: |$)/);
  return matchesOf(find, declaration).map(({ bound, ...range }) => {
    const replacement = replace.replace(/\${1,2}[A-Z]+/g, (name) => bound.get(name) ?? name);
    return { ...range, file: declaration.file, replacement };
  });
}

/** Returns the longest part that starts at `start` and that the code can do without. */
function findOmitted({ file, text, end }: Declaration, start: number): Place | undefined {
  const startOf = (part: Part) =>
    part.start + (/^(?:\s|\/\/.*\n)*/.exec(text.slice(part.start))?.[0].length ?? 0);
  const parts = partsOf(parseSync(file, text, { lang: 'ts' }).program);
  const longest = parts
    .filter((part) => part.end <= end && startOf(part) === start)
    .sort((one, other) => other.end - one.end)[0];
  if (longest === undefined) return undefined;
  const [before, after] = longest.isListed
    ? [/,\s*$/.exec(text.slice(0, start)), /^\s*,/.exec(text.slice(longest.end))]
    : [];
  if (after) return { file, start, end: longest.end + after[0].length, replacement: '' };
  return { file, start: start - (before?.[0].length ?? 0), end: longest.end, replacement: '' };
}

type Part = { readonly start: number; readonly end: number; readonly isListed: boolean };
type Node = { readonly type: string; readonly start: number; readonly end: number } & Readonly<
  Record<string, unknown>
>;

/** Returns statements, links of chains, right operands and members of lists, at every depth. */
function partsOf(value: unknown): readonly Part[] {
  if (Array.isArray(value)) return value.flatMap(partsOf);
  if (!isNode(value)) return [];
  const inside = Object.values(value).flatMap(partsOf);
  const { type, start, end, callee, left, right } = value;
  const lists = ['elements', 'properties', 'arguments', 'members', 'params', 'body'];
  const listed = lists.flatMap((name) => (Array.isArray(value[name]) ? value[name] : [])).filter(isNode);
  const parts = listed.map((member) => ({ start: member.start, end: member.end, isListed: true }));
  if (/Statement$|^VariableDeclaration$/.test(type)) parts.push({ start, end, isListed: false });
  if (type === 'CallExpression' && isNode(callee) && isNode(callee.object))
    parts.push({ start: callee.object.end, end, isListed: false });
  if (isNode(left) && isNode(right)) parts.push({ start: left.end, end: right.end, isListed: false });
  return [...parts, ...inside];
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

function declarationsOf(file: string, text: string): readonly Declaration[] {
  return parseSync(file, text, { lang: 'ts' }).program.body.flatMap((statement) => {
    const { start, end } = statement;
    return namesOf(statement).map((name) => ({ name, file, text, start, end }));
  });
}

function namesOf(statement: Statement): readonly string[] {
  const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
  if (declared?.type === 'VariableDeclaration')
    return declared.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []));
  return declared && 'id' in declared && declared.id?.type === 'Identifier' ? [declared.id.name] : [];
}

/** Returns where the words match in the declaration. */
function matchesOf(words: string, { text, start, end }: Declaration) {
  const pattern = tokenize(words);
  const tokens = tokenize(text.slice(start, end), start);
  return tokens.flatMap((first, index) => {
    const match = matchAt(index, pattern, { text, tokens, bound: new Map() });
    const last = match && tokens[match.end - 1];
    return last ? [{ start: first.start, end: last.end, bound: match.bound }] : [];
  });
}

/** Splits the code into tokens, including text inside templates, such as SQL. */
function tokenize(text: string, start = 0): readonly Token[] {
  const tokens: Token[] = [];
  let at = start;
  for (const { type, value } of jsTokens(text)) {
    const end = at + value.length;
    if (/^(?:NoSubstitution)?Template/.test(type)) {
      const inner = value.slice(1).replace(/(?:\$\{|`)$/, '');
      tokens.push({ value: value.slice(0, 1), start: at, end: at + 1 }, ...tokenize(inner, at + 1));
      for (let mark = at + 1 + inner.length; mark < end; mark++)
        tokens.push({ value: text.charAt(mark - start), start: mark, end: mark + 1 });
    } else if (!/White|Line/.test(type)) tokens.push({ value, start: at, end });
    at = end;
  }
  return tokens;
}

type Subject = { readonly text: string; readonly tokens: readonly Token[] };
type Match = { readonly end: number; readonly bound: Bindings };

/** Matches the complete pattern, starting at token `at`. */
function matchAt(
  at: number,
  [wanted, ...rest]: readonly Token[],
  { bound, ...subject }: Subject & { readonly bound: Bindings },
): Match | undefined {
  const { text, tokens } = subject;
  const token = tokens[at];
  if (!wanted || !token) return wanted ? undefined : { end: at, bound };
  const { value } = wanted;
  const extendAnsweredRun = (next: number, pattern = rest) => matchAt(next, pattern, { ...subject, bound });
  const bind = (next: number) => {
    const found = next === at ? '' : text.slice(token.start, tokens[next - 1]?.end);
    if ((bound.get(value) ?? found) !== found) return undefined;
    return matchAt(next, rest, { ...subject, bound: new Map(bound).set(value, found) });
  };
  if (/^\$[A-Z]+$/.test(value)) return /^[#\w]+$/.test(token.value) ? bind(at + 1) : undefined;
  if (/^\$\$[A-Z]+$/.test(value)) {
    let match = bind(at);
    for (let next = at; !match && next !== -1; match = bind(next)) next = skipOne(tokens, next);
    return match;
  }
  if (value === token.value) return extendAnsweredRun(at + 1);
  // A trailing comma depends on the layout.
  if (token.value === ',' && isCloser(tokens[at + 1])) return extendAnsweredRun(at + 1, [wanted, ...rest]);
  if (value === ',' && isCloser(token) && (!rest[0] || isCloser(rest[0]))) return extendAnsweredRun(at);
  return undefined;
}

function isCloser(token: Token | undefined): boolean {
  return token !== undefined && /^[)\]}]$/.test(token.value);
}

/** Returns the index after the token, or after the pair of brackets, at `from`; -1 at the end of what encloses it. */
function skipOne(tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let at = from; at < tokens.length; at++) {
    if (/^[([{]$/.test(tokens[at]?.value ?? '')) depth += 1;
    if (isCloser(tokens[at])) depth -= 1;
    if (depth < 0) return -1;
    if (depth === 0) return at + 1;
  }
  return -1;
}

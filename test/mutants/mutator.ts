/**
 * Applies an edit where its pattern matches the syntax: token by token, inside one top-level declaration. Layout,
 * comments, trailing commas and the declaration's file make no difference.
 */
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import jsTokens from 'js-tokens';
import { parseSync } from 'rolldown/utils';
import type { Edit } from './mutants.ts';

/** Returns the text of each file that the edits change. Throws if one of them matches nowhere, or in two places. */
export type Mutator = (edits: readonly Edit[]) => ReadonlyMap<string, string>;

type Token = { readonly value: string; readonly start: number; readonly end: number };
type Place = {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly bound: Bindings;
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
  for await (const file of glob('{src,channels,plugins}/**/*.ts', { cwd: root })) {
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
      changed.set(place.file, text.slice(0, place.start) + fill(edit, place) + text.slice(place.end));
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
  return `${edit.in}: ${where}, it has to match once: ${edit.find}`;
}

function fill({ replace }: Edit, { bound }: Place): string {
  return replace.replace(/\${1,2}[A-Z]+/g, (name) => bound.get(name) ?? name);
}

function findPlaces({ file, text, start, end }: Declaration, edit: Edit): readonly Place[] {
  const pattern = tokenize(edit.find);
  const tokens = tokenize(text.slice(start, end), start);
  return tokens.flatMap((first, index) => {
    const match = matchAt(index, pattern, { text, tokens, bound: new Map() });
    const last = match && tokens[match.end - 1];
    return last ? [{ file, start: first.start, end: last.end, bound: match.bound }] : [];
  });
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

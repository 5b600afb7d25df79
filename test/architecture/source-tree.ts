import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/sync';
import { findClockAssertions } from './clock-assertions.ts';
import { type CommandUse, findCommandUses } from './command-names.ts';
import { type DeclaredName, findDeclaredNames } from './declared-names.ts';
import { findTableWrites, type TableWrite } from './table-writes.ts';
import { findTitles, type Title } from './test-titles.ts';

/** The input of the rules: every TypeScript file of a project, as parsed by TypeScript itself. */
export type SourceTree = { readonly root: string; readonly modules: readonly Module[] };

export type Module = {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly lineCount: number;
  readonly imports: readonly Import[];
  readonly exports: readonly Export[];
  readonly functions: readonly FunctionSize[];
  /** The texts of string literals and template pieces. */
  readonly strings: readonly string[];
  /** Constructs this project doesn't use, each as "line: name". */
  readonly oddities: readonly string[];
  /** Lines on which a test asserts how long something took. */
  readonly clockAssertions: readonly number[];
  readonly tableWrites: readonly (Omit<TableWrite, 'at'> & { readonly line: number })[];
  readonly commandUses: readonly (Omit<CommandUse, 'at'> & { readonly line: number })[];
  /** Of tests; empty for other files. */
  readonly titles: readonly (Omit<Title, 'at'> & { readonly line: number })[];
  /** Of other files; empty for tests. */
  readonly declared: readonly (Omit<DeclaredName, 'at'> & { readonly line: number })[];
};

export type Import = {
  readonly specifier: string;
  /** The imported file of this project, relative to the root; undefined for packages and node: modules. */
  readonly target: string | undefined;
  /** The imported names, as the other file exports them; none for a complete module or an `import()`. */
  readonly names: readonly string[];
};

/** A declaration that a module exports. `isDocumented`: it has a doc comment. */
export type Export = { readonly name: string; readonly line: number; readonly isDocumented: boolean };

export type FunctionSize = { readonly name: string; readonly line: number; readonly lineCount: number };

/** The settings of this project without its libraries: parsing those took most of the time. */
export const onlySyntax = 'test/architecture/only-syntax.json';

/** Parses the project whose settings are in `<root>/<config>`. */
export function readSourceTree(root: string, config: string): SourceTree {
  const api = new API({ cwd: root });
  try {
    const [project] = api.updateSnapshot({ openProject: join(root, config) }).getProjects();
    if (project === undefined) throw new Error(`no project in ${root}`);
    const modules: Module[] = [];
    for (const name of project.program.getSourceFileNames()) {
      const path = relative(root, name);
      const file =
        path.startsWith('..') || path.includes('node_modules')
          ? undefined
          : project.program.getSourceFile(name);
      if (file !== undefined) modules.push(readModule(root, path, file));
    }
    return { root, modules };
  } finally {
    api.close();
  }
}

type Findings = {
  readonly imports: Import[];
  readonly exports: Export[];
  readonly functions: FunctionSize[];
  readonly strings: string[];
  readonly oddities: string[];
};

function readModule(root: string, path: string, file: SourceFile): Module {
  const findings: Findings = { imports: [], exports: [], functions: [], strings: [], oddities: [] };
  const lineAt = createLineFinder(file.text);
  const visit = (node: Node): void => {
    readImport(node, (specifier, names) => {
      findings.imports.push({ specifier, target: resolveImport(root, path, specifier), names });
    });
    readExport(node, lineAt, findings);
    readFunction(node, lineAt, findings);
    if (is.isStringLiteral(node) || is.isNoSubstitutionTemplateLiteral(node))
      findings.strings.push(node.text);
    if (is.isTemplateHead(node)) findings.strings.push(node.text);
    const oddity = nameOddity(node);
    if (oddity !== undefined) findings.oddities.push(`${lineAt(node.end)}: ${oddity}`);
    node.forEachChild(visit);
  };
  visit(file);
  for (const match of file.text.matchAll(/@ts-(?:ignore|nocheck|expect-error)|\bvi\.(?:do)?[mM]ock\(/g)) {
    // This rule itself names what it searches for.
    if (!path.startsWith('test/architecture/')) findings.oddities.push(`${lineAt(match.index)}: ${match[0]}`);
  }
  const isOfTests = path.startsWith('test/');
  const clockAssertions = isOfTests ? findClockAssertions(file).map(lineAt) : [];
  const titles = isOfTests ? findTitles(file).map(({ at, text }) => ({ text, line: lineAt(at) })) : [];
  const declared = isOfTests
    ? []
    : findDeclaredNames(file).map(({ at, name }) => ({ name, line: lineAt(at) }));
  const tableWrites = findTableWrites(file).map(({ at, ...write }) => ({ ...write, line: lineAt(at) }));
  const commandUses = findCommandUses(file).map(({ at, name }) => ({ name, line: lineAt(at) }));
  const lineCount = file.text.trimEnd().split('\n').length;
  const names = { titles, declared };
  return {
    path,
    text: file.text,
    lineCount,
    clockAssertions,
    tableWrites,
    commandUses,
    ...names,
    ...findings,
  };
}

function readImport(node: Node, onImport: (specifier: string, names: readonly string[]) => void): void {
  if (is.isImportDeclaration(node) || is.isExportDeclaration(node)) {
    const specifier = node.moduleSpecifier;
    if (specifier !== undefined && is.isStringLiteral(specifier)) onImport(specifier.text, namesIn(node));
  } else if (is.isImportTypeNode(node)) {
    const { argument } = node;
    if (is.isLiteralTypeNode(argument) && is.isStringLiteral(argument.literal))
      onImport(argument.literal.text, []);
  } else if (is.isCallExpression(node) && node.expression.kind === SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    if (argument !== undefined && is.isStringLiteral(argument)) onImport(argument.text, []);
  }
}

/** Returns the names in the braces of an import or a re-export. */
function namesIn(node: Node): readonly string[] {
  const names: string[] = [];
  const visit = (inner: Node): void => {
    if (is.isImportSpecifier(inner) || is.isExportSpecifier(inner))
      names.push((inner.propertyName ?? inner.name).text);
    else inner.forEachChild(visit);
  };
  visit(node);
  return names;
}

function readExport(node: Node, lineAt: (offset: number) => number, findings: Findings): void {
  if (node.parent?.kind !== SyntaxKind.SourceFile || !/^export\s/.test(node.getText())) return;
  const text = node.getSourceFile().text.slice(node.pos, node.end);
  const before = text.slice(0, text.length - node.getText().length);
  const isDocumented = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n?$/.test(before);
  const line = lineAt(node.end - node.getText().length);
  for (const name of declaredNames(node)) findings.exports.push({ name, line, isDocumented });
}

function declaredNames(node: Node): readonly string[] {
  if (is.isVariableStatement(node))
    return node.declarationList.declarations.flatMap(({ name }) =>
      is.isIdentifier(name) ? [name.text] : [],
    );
  const isNamed =
    is.isFunctionDeclaration(node) ||
    is.isTypeAliasDeclaration(node) ||
    is.isInterfaceDeclaration(node) ||
    is.isClassDeclaration(node);
  return isNamed && node.name !== undefined ? [node.name.text] : [];
}

/** Returns the file of this project that an import names; undefined for packages and `node:` modules. */
export function resolveImport(root: string, from: string, specifier: string): string | undefined {
  const [, folder, file] = /^#(contracts|channel-kit)\/(.*)$/.exec(specifier) ?? [];
  if (folder !== undefined) return `src/${folder}/${file}`;
  if (!specifier.startsWith('.')) return undefined;
  const path = resolve(root, dirname(from), specifier);
  return existsSync(path) ? relative(root, path) : undefined;
}

function readFunction(node: Node, lineAt: (offset: number) => number, findings: Findings): void {
  const isFunction =
    is.isFunctionDeclaration(node) ||
    is.isFunctionExpression(node) ||
    is.isArrowFunction(node) ||
    is.isMethodDeclaration(node) ||
    is.isConstructorDeclaration(node) ||
    is.isGetAccessorDeclaration(node);
  if (!isFunction || node.body === undefined) return;
  const line = lineAt(node.body.pos);
  const name =
    'name' in node && node.name !== undefined && is.isIdentifier(node.name) ? node.name.text : 'a function';
  findings.functions.push({ name, line, lineCount: lineAt(node.body.end) - line + 1 });
}

function nameOddity(node: Node): string | undefined {
  switch (node.kind) {
    case SyntaxKind.AnyKeyword:
      return 'any';
    case SyntaxKind.NonNullExpression:
      return 'a non-null assertion';
    case SyntaxKind.EnumDeclaration:
      return 'an enum';
    case SyntaxKind.ModuleDeclaration:
      // `declare module 'x'` extends a library's types and isn't a namespace.
      return is.isModuleDeclaration(node) && is.isStringLiteral(node.name) ? undefined : 'a namespace';
    case SyntaxKind.Decorator:
      return 'a decorator';
    case SyntaxKind.ExportAssignment:
    case SyntaxKind.DefaultKeyword:
      return node.parent?.kind === SyntaxKind.DefaultClause ? undefined : 'a default export';
    case SyntaxKind.VariableStatement:
      return isModuleLevelLet(node) ? 'a module-level let' : undefined;
    case SyntaxKind.PropertyAccessExpression:
      return isEnvironmentRead(node) ? 'process.env' : undefined;
    default:
      return undefined;
  }
}

function isModuleLevelLet(node: Node): boolean {
  if (!is.isVariableStatement(node) || node.parent?.kind !== SyntaxKind.SourceFile) return false;
  return /^\s*(?:export\s+)?let\b/.test(node.getText());
}

function isEnvironmentRead(node: Node): boolean {
  if (!is.isPropertyAccessExpression(node)) return false;
  const { expression, name } = node;
  return is.isIdentifier(expression) && expression.text === 'process' && name.text === 'env';
}

/** Returns line numbers from 1, by binary search over the line starts. */
function createLineFinder(text: string): (offset: number) => number {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

import { join, relative } from 'node:path';
import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/sync';
import { onlySyntax, resolveImport } from './source-tree.ts';

/** The names that a file exports, and those that it uses. */
export type Names = {
  readonly path: string;
  readonly exported: readonly Export[];
  /** `<file>#<name>` of each import from this project; `<file>#*` for a whole module, `<file>#?` for a lazy import. */
  readonly imported: ReadonlySet<string>;
  /** How often each identifier occurs in it. */
  readonly identifiers: ReadonlyMap<string, number>;
  /** Members that it reads, as `x.name` or by destructuring. */
  readonly members: ReadonlySet<string>;
  /** Complete chains that it reads, such as `config.lanes.leaseMs`; `?` starts those of a destructured parameter. */
  readonly chains: ReadonlySet<string>;
  /** Events that it logs. */
  readonly events: readonly string[];
  /** Types that it declares. */
  readonly types: readonly string[];
};

export type Export = { readonly name: string; readonly isType: boolean };

/** Reads the names in every file of the project below `root`. */
export function readNames(root: string): readonly Names[] {
  const api = new API({ cwd: root });
  try {
    const [project] = api.updateSnapshot({ openProject: join(root, onlySyntax) }).getProjects();
    if (project === undefined) throw new Error(`no project in ${root}`);
    return project.program.getSourceFileNames().flatMap((name) => {
      const path = relative(root, name);
      const isOurs = !path.startsWith('..') && !path.includes('node_modules');
      const file = isOurs ? project.program.getSourceFile(name) : undefined;
      return file === undefined ? [] : [namesOf(root, path, file)];
    });
  } finally {
    api.close();
  }
}

function namesOf(root: string, path: string, file: SourceFile): Names {
  const exported: Export[] = [];
  const imported = new Set<string>();
  const identifiers = new Map<string, number>();
  const members = new Set<string>();
  const chains = new Set<string>();
  const events: string[] = [];
  const types: string[] = [];
  const visit = (node: Node): void => {
    if (is.isIdentifier(node)) identifiers.set(node.text, (identifiers.get(node.text) ?? 0) + 1);
    if (is.isPropertyAccessExpression(node) && is.isIdentifier(node.name)) members.add(node.name.text);
    if (is.isBindingElement(node)) members.add((node.propertyName ?? node.name)?.getText() ?? '');
    for (const chain of chainsOf(node)) chains.add(chain);
    if (node.parent?.kind === SyntaxKind.SourceFile) exported.push(...exportsOf(node));
    for (const name of importsOf(root, path, node)) imported.add(name);
    events.push(...eventsOf(node));
    if (is.isTypeAliasDeclaration(node)) types.push(node.name.text);
    node.forEachChild(visit);
  };
  visit(file);
  return { path, exported, imported, identifiers, members, chains, events, types };
}

/** Returns the chain that ends at this node, unless it is the beginning of a longer one. */
function chainsOf(node: Node): readonly string[] {
  if (is.isBindingElement(node)) {
    const isGroup = node.name !== undefined && is.isObjectBindingPattern(node.name);
    return isGroup ? [] : [chainOf(node)];
  }
  const isWhole =
    is.isPropertyAccessExpression(node) && !(node.parent && is.isPropertyAccessExpression(node.parent));
  return isWhole ? [chainOf(node)] : [];
}

function chainOf(node: Node | undefined): string {
  if (node === undefined) return '?';
  if (is.isPropertyAccessExpression(node)) return `${chainOf(node.expression)}.${node.name.getText()}`;
  if (is.isBindingElement(node)) {
    const name = (node.propertyName ?? node.name)?.getText() ?? '';
    return `${chainOf(node.parent.parent)}.${name}`;
  }
  if (is.isVariableDeclaration(node)) return chainOf(node.initializer);
  return is.isIdentifier(node) ? node.text : '?';
}

function exportsOf(node: Node): readonly Export[] {
  if (!/^export\b/.test(node.getText())) return [];
  if (is.isVariableStatement(node)) {
    return node.declarationList.declarations.map(({ name }) => ({ name: name.getText(), isType: false }));
  }
  const isType = is.isTypeAliasDeclaration(node) || is.isInterfaceDeclaration(node);
  return 'name' in node && node.name !== undefined && is.isIdentifier(node.name as Node)
    ? [{ name: (node.name as Node).getText(), isType }]
    : [];
}

function importsOf(root: string, path: string, node: Node): readonly string[] {
  if (is.isImportDeclaration(node) || is.isExportDeclaration(node)) {
    const { moduleSpecifier } = node;
    const target =
      moduleSpecifier && is.isStringLiteral(moduleSpecifier)
        ? resolveImport(root, path, moduleSpecifier.text)
        : undefined;
    if (target === undefined) return [];
    const clause = is.isImportDeclaration(node) ? node.importClause?.namedBindings : node.exportClause;
    if (clause === undefined || !(is.isNamedImports(clause) || is.isNamedExports(clause))) {
      return [`${target}#*`];
    }
    return clause.elements.map(({ propertyName, name }) => `${target}#${(propertyName ?? name).getText()}`);
  }
  const isLazy = is.isCallExpression(node) && node.expression.kind === SyntaxKind.ImportKeyword;
  const argument = isLazy ? node.arguments[0] : undefined;
  if (argument === undefined || !is.isStringLiteral(argument)) return [];
  const target = resolveImport(root, path, argument.text);
  return target === undefined ? [] : [`${target}#?`];
}

const levels = new Set(['debug', 'info', 'warn', 'error']);

/** Returns the events that `log.warn({ … }, 'event')` may log; none for any other node. */
function eventsOf(node: Node): readonly string[] {
  if (!is.isCallExpression(node)) return [];
  const { expression } = node;
  const isMember = is.isPropertyAccessExpression(expression);
  if (!isMember && !is.isElementAccessExpression(expression)) return [];
  const isLevel = !isMember || levels.has(expression.name.getText());
  const [, event] = node.arguments;
  if (!isLevel || event === undefined || !/\blog$/i.test(expression.expression.getText())) return [];
  const branches = is.isConditionalExpression(event) ? [event.whenTrue, event.whenFalse] : [event];
  return branches.map((each) => (is.isStringLiteral(each) ? each.text : each.getText()));
}

import type { Node, SourceFile } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';

/** A change of a table's rows, as written in the source. */
export type TableWrite = {
  readonly kind: 'insert' | 'update' | 'delete';
  /** Offset in the file. */
  readonly at: number;
  /** Undefined if no string literal names it. */
  readonly table: string | undefined;
  /** Columns that an update sets; undefined if the expression doesn't show all of them. */
  readonly columns: readonly string[] | undefined;
};

/** Query methods, and functions that take the transaction first and then the table. */
const writers: Readonly<Record<string, TableWrite['kind']>> = {
  updateTable: 'update',
  insertInto: 'insert',
  replaceInto: 'insert',
  mergeInto: 'update',
  deleteFrom: 'delete',
  insertRow: 'insert',
  insertNewRow: 'insert',
  ensureRow: 'insert',
  changeRow: 'update',
};

/** Finds every insert, update and delete, with the columns that an update's call chain sets. Raw SQL counts. */
export function findTableWrites(file: SourceFile): readonly TableWrite[] {
  const writes: TableWrite[] = [];
  const add = (
    kind: TableWrite['kind'] | undefined,
    node: Node,
    table: Node | undefined,
    setting: readonly Node[],
  ) => {
    if (kind === undefined) return;
    writes.push({
      kind,
      at: node.end,
      // An aliased table is still that table: `inbox as i`.
      table: table !== undefined && is.isStringLiteral(table) ? table.text.split(' ')[0] : undefined,
      columns: setting.length === 0 ? undefined : joinColumns(setting.map(columnsOf)),
    });
  };
  const visit = (node: Node, chain: readonly Node[]): void => {
    if (is.isCallExpression(node) && is.isPropertyAccessExpression(node.expression)) {
      add(kindOf(node.expression.name.text), node, node.arguments[0], chain.flatMap(argumentOfSet));
      visit(node.expression.expression, [...chain, node]);
      for (const argument of node.arguments) visit(argument, []);
      return;
    }
    if (is.isCallExpression(node) && is.isIdentifier(node.expression))
      add(kindOf(node.expression.text), node, node.arguments[1], node.arguments.slice(3, 4));
    node.forEachChild((child) => visit(child, []));
  };
  visit(file, []);
  for (const [kind, raw] of rawWrites)
    for (const match of file.text.matchAll(raw))
      writes.push({ kind, at: match.index, table: nameIn(match[1]), columns: undefined });
  return writes;
}

/** A table as raw SQL names it, with or without a schema; `${…}` is only known at run time. */
const rawName = String.raw`(?:only\s+)?(?:"?\$\{[^}]*\}"?\.)?"?(\w+|\$\{[^}]*\})"?`;

const rawWrites: readonly (readonly [TableWrite['kind'], RegExp])[] = [
  ['update', new RegExp(String.raw`\bupdate\s+${rawName}\s+(?:as\s+\w+\s+)?set\b`, 'gi')],
  ['insert', new RegExp(String.raw`\b(?:insert(?:\s+or\s+\w+)?|replace|merge)\s+into\s+${rawName}`, 'gi')],
  ['delete', new RegExp(String.raw`\b(?:delete\s+from|truncate(?:\s+table)?)\s+${rawName}`, 'gi')],
];

/** Returns undefined for a name that is only known at run time. */
function nameIn(raw: string | undefined): string | undefined {
  return raw?.startsWith('$') ? undefined : raw;
}

function kindOf(name: string): TableWrite['kind'] | undefined {
  return Object.hasOwn(writers, name) ? writers[name] : undefined;
}

/** Returns what a call passes to `set`; nothing if it is another call. */
function argumentOfSet(call: Node): readonly Node[] {
  if (!is.isCallExpression(call) || !is.isPropertyAccessExpression(call.expression)) return [];
  if (call.expression.name.text !== 'set') return [];
  const [argument] = call.arguments;
  return argument === undefined ? [] : [argument];
}

function joinColumns(each: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  const known = each.filter((columns) => columns !== undefined);
  return known.length === each.length ? known.flat() : undefined;
}

/** Returns the member names of an object literal, or of one that a function returns. */
function columnsOf(node: Node): readonly string[] | undefined {
  if (is.isArrowFunction(node)) return columnsOf(node.body);
  if (is.isParenthesizedExpression(node)) return columnsOf(node.expression);
  if (!is.isObjectLiteralExpression(node)) return undefined;
  const names = node.properties.map((property) =>
    (is.isPropertyAssignment(property) || is.isShorthandPropertyAssignment(property)) &&
    is.isIdentifier(property.name)
      ? property.name.text
      : undefined,
  );
  const known = names.filter((name) => name !== undefined);
  return known.length === names.length ? known : undefined;
}

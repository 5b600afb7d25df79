import type { Node, SourceFile } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';

/** An update of a table's rows, as it is written in the source. */
export type TableUpdate = {
  /** Offset in the file. */
  readonly at: number;
  /** Undefined when no string literal names it. */
  readonly table: string | undefined;
  /** The columns it sets; undefined when the expression does not show all of them. */
  readonly columns: readonly string[] | undefined;
};

/** Finds every `updateTable(…)` with what the same chain of calls sets, and every raw `update … set`. */
export function findTableUpdates(file: SourceFile): readonly TableUpdate[] {
  const updates: TableUpdate[] = [];
  const visit = (node: Node, chain: readonly Node[]): void => {
    if (is.isCallExpression(node) && is.isPropertyAccessExpression(node.expression)) {
      const { name } = node.expression;
      if (name.text === 'updateTable') {
        const [table] = node.arguments;
        const setting = chain.flatMap((call) => argumentOfSet(call));
        updates.push({
          at: node.end,
          table: table !== undefined && is.isStringLiteral(table) ? table.text : undefined,
          columns: setting.length === 0 ? undefined : joinColumns(setting.map(columnsOf)),
        });
      }
      visit(node.expression.expression, [...chain, node]);
      for (const argument of node.arguments) visit(argument, []);
      return;
    }
    node.forEachChild((child) => visit(child, []));
  };
  visit(file, []);
  for (const match of file.text.matchAll(/\bupdate\s+"?(\w+)"?\s+(?:as\s+\w+\s+)?set\b/gi))
    updates.push({ at: match.index, table: match[1], columns: undefined });
  return updates;
}

/** What a call hands to `set`; none when it is another call. */
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

/** The names of an object literal's members, also of one that a function returns. */
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

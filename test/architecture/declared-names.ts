import type { Node, SourceFile } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';

/** A name that a file declares, and its offset. */
export type DeclaredName = { readonly name: string; readonly at: number };

/** Returns the names of variables, parameters, functions, types, members and keys that a file declares. */
export function findDeclaredNames(file: SourceFile): readonly DeclaredName[] {
  const names: DeclaredName[] = [];
  const visit = (node: Node): void => {
    const name = 'name' in node && !isUse(node) ? (node.name as Node | undefined) : undefined;
    if (name !== undefined && (is.isIdentifier(name) || is.isPrivateIdentifier(name)))
      names.push({ name: name.text.replace(/^#/, ''), at: name.end });
    node.forEachChild(visit);
  };
  visit(file);
  return names;
}

/** Tells a node that names what is declared elsewhere. */
function isUse(node: Node): boolean {
  return (
    is.isPropertyAccessExpression(node) ||
    is.isImportSpecifier(node) ||
    is.isExportSpecifier(node) ||
    is.isShorthandPropertyAssignment(node)
  );
}

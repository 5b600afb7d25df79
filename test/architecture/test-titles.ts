import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';

/** The title of a test, with `${…}` where a template has values, and its offset. */
export type Title = { readonly text: string; readonly at: number };

/** Returns the first argument of each `it(…)` and `test(…)`, also of `it.each(…)(…)` and the like. */
export function findTitles(file: SourceFile): readonly Title[] {
  const titles: Title[] = [];
  const visit = (node: Node): void => {
    if (is.isCallExpression(node) && isTest(node.expression)) {
      const [title] = node.arguments;
      const text = title && textOf(title);
      if (title !== undefined && text !== undefined) titles.push({ text, at: title.end });
    }
    node.forEachChild(visit);
  };
  visit(file);
  return titles;
}

/** Tells a test from what only prepares one: `it.each(cases)` is called again, with the title. */
function isTest(callee: Node): boolean {
  if (is.isIdentifier(callee)) return callee.text === 'it' || callee.text === 'test';
  if (is.isCallExpression(callee)) return isTest(callee.expression);
  if (is.isTaggedTemplateExpression(callee)) return isTest(callee.tag);
  if (!is.isPropertyAccessExpression(callee)) return false;
  return isTest(callee.expression);
}

function textOf(title: Node): string | undefined {
  if (is.isStringLiteral(title) || is.isNoSubstitutionTemplateLiteral(title)) return title.text;
  return title.kind === SyntaxKind.TemplateExpression ? title.getText().slice(1, -1) : undefined;
}

import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';

/** A name that a file uses as that of a chat command, if such a command exists. */
export type CommandUse = { readonly name: string; readonly at: number };

/** `/stop` as a person types it, in the source of a literal; not part of a path or a URL. */
const typed = /(?<![\w.:}/-])\\?\/([a-z]+)(?![\w/-])/g;

/** An expression whose value is a command's name. */
const nameOfCommand = /\bcommand(?:\??\.name)?$|[cC]ommandName$/;

/** A call that looks a command up by its name. */
const lookUp = /\bcommand\w*\.(?:get|has)$/i;

/**
 * Finds names used as those of chat commands. Most are ordinary words (`new`, `link`), so a string alone means
 * nothing: it counts if it has the slash, is compared with a command, or is used to look one up.
 */
export function findCommandUses(file: SourceFile): readonly CommandUse[] {
  const found: CommandUse[] = [];
  const visit = (node: Node): void => {
    const names = [...typedNames(node), ...namesOf(comparedWithCommand(node))];
    found.push(...names.map((name) => ({ name, at: node.end })));
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

function typedNames(node: Node): readonly string[] {
  const isRegex = is.isRegularExpressionLiteral(node);
  const isText =
    isRegex ||
    is.isStringLiteral(node) ||
    is.isNoSubstitutionTemplateLiteral(node) ||
    is.isTemplateHead(node) ||
    is.isTemplateMiddle(node) ||
    is.isTemplateTail(node);
  if (!isText) return [];
  // The first character of a regular expression is its own slash.
  const source = isRegex ? node.getText().slice(1) : node.getText();
  return [...source.matchAll(typed)].map(([, name = '']) => name);
}

function comparedWithCommand(node: Node): readonly Node[] {
  if (is.isBinaryExpression(node)) {
    const { kind } = node.operatorToken;
    const isEquality =
      kind === SyntaxKind.EqualsEqualsEqualsToken || kind === SyntaxKind.ExclamationEqualsEqualsToken;
    const sides = [node.left, node.right];
    return isEquality && sides.some((side) => nameOfCommand.test(side.getText())) ? sides : [];
  }
  if (is.isSwitchStatement(node) && nameOfCommand.test(node.expression.getText()))
    return node.caseBlock.clauses.flatMap((clause) => (is.isCaseClause(clause) ? [clause.expression] : []));
  if (is.isCallExpression(node) && lookUp.test(node.expression.getText())) return node.arguments;
  return [];
}

function namesOf(nodes: readonly Node[]): readonly string[] {
  return nodes.flatMap((node) => (is.isStringLiteral(node) ? [node.text] : []));
}

import {
  type ArrowFunction,
  type FunctionDeclaration,
  type FunctionExpression,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';

/** Calls that read a time; the second kind returns a duration if it is passed an earlier reading. */
const clockCall = /^(?:performance\.now|Date\.now|process\.hrtime(?:\.bigint)?)$/;
const cpuClockCall = /^process\.(?:thread)?[cC]puUsage$/;

type Known = {
  /** Names of variables that hold a moment. */
  readonly moments: Set<string>;
  /** Names of variables that hold a duration, or something computed from one. */
  readonly durations: Set<string>;
};

/** Returns the offsets at which `expect` is passed a duration, as far as a single file shows. */
export function findClockAssertions(file: SourceFile): readonly number[] {
  const known: Known = { moments: new Set(), durations: new Set() };
  for (let before = -1; before !== sizeOf(known); ) {
    before = sizeOf(known);
    walk(file, (node) => learn(node, known));
  }
  const found: number[] = [];
  walk(file, (node) => {
    if (!is.isCallExpression(node) || node.expression.getText() !== 'expect') return;
    const [actual] = node.arguments;
    if (actual !== undefined && holds(actual, (part) => isDuration(part, known))) found.push(node.end);
  });
  return found;
}

function sizeOf({ moments, durations }: Known): number {
  return moments.size + durations.size;
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  node.forEachChild((child) => walk(child, visit));
}

function holds(node: Node, isSo: (node: Node) => boolean): boolean {
  if (isSo(node)) return true;
  let found = false;
  node.forEachChild((child) => {
    found ||= holds(child, isSo);
  });
  return found;
}

function learn(node: Node, known: Known): void {
  if (is.isVariableDeclaration(node) && node.initializer !== undefined) {
    note({ into: node.name, from: node.initializer }, known);
  } else if (is.isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.EqualsToken) {
    note({ into: node.left, from: node.right }, known);
  } else if (is.isFunctionDeclaration(node) && node.name !== undefined) {
    note({ into: node.name, from: node }, known);
  } else if (is.isCallExpression(node) && is.isPropertyAccessExpression(node.expression)) {
    const { expression, name } = node.expression;
    if (name.text === 'push') for (const from of node.arguments) note({ into: expression, from }, known);
  }
}

/** Returns a function's results, except object literals; any other node is its own result. */
function resultsOf(node: Node): readonly Node[] {
  if (!isFunction(node)) return [node];
  if (node.body === undefined) return [];
  if (!is.isBlock(node.body)) return [node.body];
  const results: Node[] = [];
  const visit = (inner: Node): void => {
    if (isFunction(inner)) return;
    if (is.isReturnStatement(inner) && inner.expression !== undefined) results.push(inner.expression);
    inner.forEachChild(visit);
  };
  node.body.forEachChild(visit);
  return results.filter((result) => !is.isObjectLiteralExpression(result));
}

function isFunction(node: Node): node is FunctionDeclaration | FunctionExpression | ArrowFunction {
  return is.isFunctionDeclaration(node) || is.isFunctionExpression(node) || is.isArrowFunction(node);
}

/** Records the name as a moment or a duration, depending on what is assigned to it. */
function note({ into, from }: { into: Node; from: Node }, known: Known): void {
  const names: string[] = [];
  walk(into, (node) => {
    if (is.isIdentifier(node)) names.push(node.text);
  });
  const isTimed = resultsOf(from).some((result) => holds(result, (part) => isDuration(part, known)));
  if (isTimed) for (const name of names) known.durations.add(name);
  else if (isMoment(from, known)) for (const name of names) known.moments.add(name);
}

function isMoment(node: Node, { moments }: Known): boolean {
  if (is.isIdentifier(node)) return moments.has(node.text);
  return is.isCallExpression(node) && clockCall.test(node.expression.getText());
}

function isDuration(node: Node, known: Known): boolean {
  if (is.isIdentifier(node)) return known.durations.has(node.text);
  if (is.isCallExpression(node) && node.arguments.length > 0)
    return cpuClockCall.test(node.expression.getText());
  if (!is.isBinaryExpression(node) || node.operatorToken.kind !== SyntaxKind.MinusToken) return false;
  return isMoment(node.left, known) && holds(node.right, (part) => isMoment(part, known));
}

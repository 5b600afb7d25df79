import { fileProblem } from './file-problem.ts';

const maxSegments = 64;
const maxNameBytes = 255;
const maxPathLength = 4096;

/**
 * Returns the names from the workspace's root to `path`; empty for the root itself. `..` is resolved
 * textually, which is exact because links are never followed. An absolute path must begin with one
 * of `roots`. Throws ParleyError `tool_failed` for a path that is invalid or leads outside.
 */
export function segmentsOf(path: string, roots: readonly string[]): readonly string[] {
  if (path.length > maxPathLength) throw fileProblem('The path is too long.');
  if (path.includes('\0')) throw fileProblem('The path contains a NUL character.');
  if (!path.isWellFormed()) throw fileProblem("The path isn't valid Unicode.");
  const segments: string[] = [];
  for (const name of relativeTo(path, roots).split('/')) {
    if (name === '' || name === '.') continue;
    if (name !== '..') segments.push(name);
    else if (segments.pop() === undefined) throw outside(path);
  }
  if (segments.length > maxSegments) throw fileProblem(`${path} is nested too deeply.`);
  if (segments.some((name) => Buffer.byteLength(name) > maxNameBytes)) {
    throw fileProblem(`${path} has a name that is too long.`);
  }
  return segments;
}

function relativeTo(path: string, roots: readonly string[]): string {
  if (!path.startsWith('/')) return path;
  for (const root of roots) {
    if (path === root) return '';
    if (path.startsWith(`${root}/`)) return path.slice(root.length + 1);
  }
  throw outside(path);
}

function outside(path: string): Error {
  return fileProblem(`${path} is outside the workspace; use a path relative to it.`);
}

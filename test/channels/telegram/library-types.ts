import { join } from 'node:path';
import type { Node } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';
import { API, type Checker, type Type } from 'typescript/unstable/sync';

/** The members of the library's types, by the name of the type. */
export type LibraryTypes = ReadonlyMap<string, readonly string[]>;

const library = 'node_modules/@grammyjs/types/';

/**
 * Reads the type declarations of the Bot API that the channel compiles against: the members of `roots`, and those of
 * every type that can be reached from them without passing through one of `leaves`.
 */
export function readLibraryTypes(roots: readonly string[], leaves: readonly string[]): LibraryTypes {
  const api = new API({ cwd: import.meta.dirname });
  try {
    // Its settings are this project's, without its files, most of which have nothing to do with the library.
    const openProject = join(import.meta.dirname, 'library-types.json');
    const [project] = api.updateSnapshot({ openProject }).getProjects();
    if (project === undefined) throw new Error('the project has no configuration');
    const { program, checker } = project;
    const found = new Map<string, readonly string[]>();
    const files = program.getSourceFileNames().filter((name) => name.includes(library));
    for (const name of files) {
      program.getSourceFile(name)?.forEachChild((node) => {
        const declared = nameOf(node);
        if (declared === undefined || !roots.includes(declared.text)) return;
        const type = checker.getTypeAtLocation(declared.node);
        if (type !== undefined) visit(checker, type, { found, leaves, seen: new Set() });
      });
    }
    return found;
  } finally {
    api.close();
  }
}

function nameOf(node: Node): { readonly text: string; readonly node: Node } | undefined {
  if (!is.isInterfaceDeclaration(node) && !is.isTypeAliasDeclaration(node)) return undefined;
  return { text: node.name.text, node: node.name };
}

type Walk = {
  readonly found: Map<string, readonly string[]>;
  readonly leaves: readonly string[];
  readonly seen: Set<number>;
};

function visit(checker: Checker, type: Type, walk: Walk): void {
  if (walk.seen.has(type.id)) return;
  walk.seen.add(type.id);
  if (type.isUnionType() || type.isIntersectionType()) {
    for (const one of type.getTypes()) visit(checker, one, walk);
    return;
  }
  if (checker.isArrayType(type) && type.isTypeReference()) {
    for (const one of checker.getTypeArguments(type)) visit(checker, one, walk);
    return;
  }
  const name = type.getSymbol()?.name ?? '';
  if (!type.isClassOrInterface() || walk.found.has(name) || walk.leaves.includes(name)) return;
  const members = checker.getPropertiesOfType(type);
  walk.found.set(name, members.map((member) => member.name).sort());
  for (const one of checker.getTypeOfSymbol(members)) if (one !== undefined) visit(checker, one, walk);
}

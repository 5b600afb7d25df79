import type { Names } from './names.ts';

const isProduct = ({ path }: Names) => /^(?:src|channels|plugins|bin|scripts)\//.test(path);
/** Declarations of JavaScript modules, generated files, and what plugins import. */
const isForeign = ({ path }: Names) =>
  /\.d\.m?ts$|\.generated\.ts$|^src\/(?:contracts\/plugin-kit|testing\/plugin-harness|library\/agent-kit)\.ts$/.test(
    path,
  );

/**
 * Finds exports that no other file of the product imports, each as `<file>#<name>`. A value that its own file uses may
 * be exported for a test, and a type that its own file uses may be exported for readers.
 */
export function findUnusedExports(files: readonly Names[]): readonly string[] {
  const product = files.filter(isProduct);
  const isImportedByProduct = importedBy(product);
  const isImportedByTest = importedBy(files.filter((file) => !isProduct(file)));
  return product
    .filter((file) => !isForeign(file))
    .flatMap(({ path, exported, identifiers }) => {
      const isUnused = exported.filter(({ name, isType }) => {
        if (isImportedByProduct(path, name)) return false;
        const isUsedInside = (identifiers.get(name) ?? 0) > 1;
        return !isUsedInside || !(isType || isImportedByTest(path, name));
      });
      return isUnused.map(({ name }) => `${path}#${name}`);
    });
}

/** Says whether one of the files imports the name, be it with its whole module. */
function importedBy(files: readonly Names[]): (path: string, name: string) => boolean {
  const all = new Set(files.flatMap(({ imported }) => [...imported]));
  return (path, name) =>
    all.has(`${path}#${name}`) ||
    all.has(`${path}#*`) ||
    (all.has(`${path}#?`) &&
      files.some(({ imported, identifiers }) => imported.has(`${path}#?`) && identifiers.has(name)));
}

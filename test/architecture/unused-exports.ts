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
  const tests = files.filter((file) => !isProduct(file));
  const isImported = (by: readonly Names[], path: string, name: string) =>
    by.some(
      ({ imported, identifiers }) =>
        imported.has(`${path}#${name}`) ||
        imported.has(`${path}#*`) ||
        (imported.has(`${path}#?`) && identifiers.has(name)),
    );
  return product
    .filter((file) => !isForeign(file))
    .flatMap(({ path, exported, identifiers }) => {
      const isUnused = exported.filter(({ name, isType }) => {
        if (isImported(product, path, name)) return false;
        const isUsedInside = (identifiers.get(name) ?? 0) > 1;
        return !isUsedInside || !(isType || isImported(tests, path, name));
      });
      return isUnused.map(({ name }) => `${path}#${name}`);
    });
}

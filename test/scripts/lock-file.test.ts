import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

type Package = {
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
};

// An install omits what a registry lacks for other platforms; `npm ci` then rejects the file.
it("names every dependency of every package, including other platforms'", () => {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Package> };
  const missing = Object.entries(lock.packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !placesOf(path, name).some((place) => Object.hasOwn(lock.packages, place)))
      .map((name) => `${path} needs ${name}`),
  );
  expect(missing).toEqual([]);
});

/** Returns the places where Node.js looks for a package that another one requires. */
function placesOf(path: string, name: string): readonly string[] {
  const outer = path.lastIndexOf('node_modules/');
  const here = `${path === '' ? '' : `${path}/`}node_modules/${name}`;
  return outer === -1 ? [here] : [here, ...placesOf(path.slice(0, Math.max(0, outer - 1)), name)];
}

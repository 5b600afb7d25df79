import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Reads the code of Parley, channels and plugins without the page's; parsing it takes two seconds. */
export function readSourceTexts(): readonly { readonly path: string; readonly text: string }[] {
  const paths = globSync('{src,channels,plugins}/**/*.{ts,js}', { cwd: root });
  return paths
    .filter((path) => !path.startsWith('src/server/page/'))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

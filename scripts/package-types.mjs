// Writes the types of what a package exports, since it has no sources: the declarations that the entries reach.
import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

const entries = ['src/contracts/plugin-kit', 'src/testing/plugin-harness', 'src/library/agent-kit'];

/** Writes them below `target`, at the paths of their sources. Rejects if one can't be written. */
export async function writeTypes(root, target) {
  const folder = await mkdtemp(join(tmpdir(), 'parley-types-'));
  try {
    await emit(root, folder);
    const open = [...entries];
    const done = new Set();
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      if (done.has(name)) continue;
      done.add(name);
      const { text, imports } = withRelativeImports(
        await readFile(join(folder, `${name}.d.ts`), 'utf8'),
        name,
      );
      open.push(...imports);
      await mkdir(dirname(join(target, name)), { recursive: true });
      await writeFile(join(target, `${name}.d.ts`), text);
      for (const [, , json] of text.matchAll(/(['"])(\.[^'"]+\.json)\1/g))
        await cp(join(root, dirname(name), json), join(target, dirname(name), json));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function emit(root, folder) {
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      ...{ noEmit: false, declaration: true, emitDeclarationOnly: true, incremental: false, noCheck: true },
      ...{ rootDir: root, outDir: folder, typeRoots: [join(root, 'node_modules/@types')] },
    },
    files: entries.map((name) => join(root, `${name}.ts`)),
    include: [],
  };
  const tsc = join(root, 'node_modules/.bin/tsc');
  const file = join(folder, 'tsconfig.json');
  await writeFile(file, JSON.stringify(config));
  // It complains about modules that the entries don't reach; a declaration that they need is missed when it is read.
  spawnSync(tsc, ['-p', file, '--checkers', '1']);
}

/** Returns the declarations as a package resolves them, and the modules of Parley that they import. */
function withRelativeImports(text, name) {
  const imports = [];
  const changed = text.replace(
    /(['"])((?:#contracts|#channel-kit|\.\.?)\/[^'"]+)\.ts\1/g,
    (_, quote, path) => {
      const imported = path.startsWith('#') ? `src/${path.slice(1)}` : join(dirname(name), path);
      imports.push(imported);
      const way = relative(dirname(name), imported);
      return `${quote}${way.startsWith('.') ? way : `./${way}`}.js${quote}`;
    },
  );
  return { text: changed.replace(/\.json'(?=;)/g, `.json' with { type: 'json' }`), imports };
}

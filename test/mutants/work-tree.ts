import { spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const copied = [
  'bin',
  'src',
  'channels',
  'plugins',
  'test',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
];

/** A copy of the sources in its own folder, so that a broken variant breaks nothing else. */
export type WorkTree = AsyncDisposable & {
  readonly folder: string;
  /** Replaces files by these texts. */
  write(texts: ReadonlyMap<string, string>): Promise<void>;
  /** Runs the tests of these files whose names contain one of `names`. Throws if none ran, as nothing was judged. */
  test(tests: Tests): Promise<Verdict>;
};

export type Tests = {
  readonly files: readonly string[];
  readonly names: readonly string[];
  /** A run that takes longer counts as no result at all, ms. */
  readonly limitMs?: number;
};

export type Verdict = { readonly passed: number; readonly failed: number; readonly output: string };

export async function copyWorkTree(options: { readonly withPostgres: boolean }): Promise<WorkTree> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-mutant-'));
  // The asynchronous one takes nine times as much processor time.
  for (const name of copied) cpSync(join(root, name), join(folder, name), { recursive: true });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  return {
    folder,
    write: async (texts) => {
      for (const [file, text] of texts) await writeFile(join(folder, file), text);
    },
    test: (tests) => runTests(folder, { ...tests, ...options }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}

type Order = Tests & { readonly withPostgres: boolean };

async function runTests(
  folder: string,
  { files, names, withPostgres, limitMs = 180_000 }: Order,
): Promise<Verdict> {
  const report = join(folder, 'report.json');
  const pattern = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|');
  const args = [
    'run',
    ...files,
    '--root',
    folder,
    '-t',
    pattern,
    '--testTimeout=30000',
    '--reporter=json',
    `--outputFile=${report}`,
  ];
  const { output, code } = await run(folder, { args, withPostgres, limitMs });
  const verdict = { ...readReport(await readFile(report, 'utf8').catch(() => '{}'), code), output };
  assertJudged(verdict, { files, names });
  return verdict;
}

type Report = {
  readonly numPassedTests?: number;
  readonly numFailedTests?: number;
  readonly numFailedTestSuites?: number;
};

/**
 * Counts an unhandled rejection as a failure even if all tests pass, because it turns `npm test` red. It shows
 * as a failed run without a failed test and without a file that didn't load.
 */
export function readReport(report: string, code: number | null): Omit<Verdict, 'output'> {
  const parsed = JSON.parse(report) as Report;
  const { numPassedTests: passed = 0, numFailedTests: failed = 0, numFailedTestSuites: suites = 0 } = parsed;
  const isUnhandled = code === 1 && passed > 0 && failed === 0 && suites === 0;
  return { passed, failed: isUnhandled ? 1 : failed };
}

/** Throws if no test ran: the code doesn't load, no test has such a name, or the run took too long. */
export function assertJudged({ passed, failed, output }: Verdict, { files, names }: Tests): void {
  if (passed + failed > 0) return;
  throw new Error(`no test of ${files.join(', ')} named "${names.join('" or "')}" ran\n${output}`);
}

/** Resolves with the tests' output, however they ended, and their exit code. */
function run(
  folder: string,
  { args, withPostgres, limitMs }: Omit<Order, keyof Tests> & { args: readonly string[]; limitMs: number },
): Promise<{ readonly output: string; readonly code: number | null }> {
  const database = withPostgres ? process.env.PARLEY_TEST_DATABASE_URL : undefined;
  const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limitMs,
    killSignal: 'SIGKILL',
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      CI: '1',
      // A broken variant often shows up as something that never happens.
      TEST_PATIENCE_MS: '10000',
      // Enough to find each of them, however slow the machine is.
      QUEUE_SEQUENCES: '1000',
      QUEUE_SEED: '20261121',
      PROOF_PAUSES: '10',
      PROPERTY_SHARE: '1',
      ...(database !== undefined && { PARLEY_TEST_DATABASE_URL: database }),
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      output = (output + chunk).slice(-8_000);
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ output, code }));
  });
}

// Runs `npm test` again and again, each time in a fresh clone of HEAD, and prints a line for each run.
//   --runs <n>       how often (default 10)
//   --busy           alongside a process that keeps one core busy
//   --logs <folder>  where to keep the logs (default: a new temporary folder)
// Plain JavaScript without dependencies. The exit code is 1 unless every run passed.
import { spawn, spawnSync } from 'node:child_process';
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10' },
    busy: { type: 'boolean', default: false },
    logs: { type: 'string' },
  },
});
const logs = values.logs ?? mkdtempSync(join(tmpdir(), 'parley-suite-'));
mkdirSync(logs, { recursive: true });

/** Runs the suite in its own clone, which is removed afterwards; its log stays. */
async function runOnce(number) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-clone-'));
  const log = join(logs, `run-${number}.log`);
  const busy = values.busy ? spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }) : undefined;
  try {
    const clone = spawnSync('git', ['clone', '--quiet', root, folder], { encoding: 'utf8' });
    if (clone.status !== 0) throw new Error(clone.stderr);
    const began = performance.now();
    const { code, cpuSeconds } = await runTests(folder, log);
    const minutes = (performance.now() - began) / 60_000;
    const [, passed = '?', failed = '?'] =
      /^(\d+) passed, (\d+) failed$/m.exec(readFileSync(log, 'utf8')) ?? [];
    return { passed, failed, isGreen: code === 0, minutes, cpuMinutes: cpuSeconds / 60 };
  } finally {
    busy?.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs the tests through a shell, which adds up the processor time of all awaited descendants. */
function runTests(cwd, path) {
  const log = createWriteStream(path);
  const child = spawn('/bin/sh', ['-c', 'npm test; code=$?; times; exit $code'], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let end = '';
  for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false });
  child.stdout.on('data', (chunk) => {
    end = (end + chunk).slice(-200);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => log.end(() => resolve({ code, cpuSeconds: readTimes(end) })));
  });
}

/** Sums the last line of `times`: user and system time of the children, as 12m34.5s. */
function readTimes(text) {
  const last = text.trimEnd().split('\n').at(-1) ?? '';
  return [...last.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, m, s]) => sum + Number(m) * 60 + Number(s),
    0,
  );
}

console.log(`logs in ${logs}${values.busy ? ', one core kept busy' : ''}`);
console.log('| run | passed | failed | minutes | minutes of processor time |\n|---|---|---|---|---|');
let green = 0;
for (let number = 1; number <= Number(values.runs); number += 1) {
  const { passed, failed, isGreen, minutes, cpuMinutes } = await runOnce(number);
  if (isGreen) green += 1;
  console.log(`| ${number} | ${passed} | ${failed} | ${minutes.toFixed(1)} | ${cpuMinutes.toFixed(1)} |`);
}
console.log(`${green} of ${values.runs} green`);
process.exitCode = green === Number(values.runs) ? 0 : 1;

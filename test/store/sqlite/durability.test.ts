import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aFolder } from '../../support/own-folder.ts';

const commits = 20;
// A container may forbid tracing.
const canTrace = spawnSync('strace', ['true']).status === 0;

describe.skipIf(!canTrace)('a commit on SQLite', () => {
  it('flushes each commit to disk before it counts (pitfall 59)', async () => {
    const dataDir = aFolder();
    const program = [process.execPath, join(import.meta.dirname, 'commit-one-by-one.ts'), dataDir];
    const traced = ['-f', '-e', 'trace=fdatasync,fsync', ...program, String(commits)];
    const { status, stderr } = spawnSync('strace', traced, { encoding: 'utf8', timeout: 300_000 });
    expect(status, stderr.slice(-2000)).toBe(0);
    const between = stderr.split('COMMITS BEGIN')[1]?.split('COMMITS END')[0] ?? '';
    expect(between.match(/f(?:data)?sync\(\d/g)?.length ?? 0).toBeGreaterThanOrEqual(commits);
  });
});

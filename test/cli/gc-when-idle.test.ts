import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

it('collects garbage once the process is idle, not while it works', () => {
  const program = join(import.meta.dirname, 'busy-then-idle.ts');
  const { stdout } = spawnSync(process.execPath, ['--expose-gc', program], { encoding: 'utf8' });
  const { idleAt, collectedAt } = JSON.parse(stdout) as { idleAt: number; collectedAt: number };
  expect(collectedAt).toBeGreaterThan(idleAt);
});

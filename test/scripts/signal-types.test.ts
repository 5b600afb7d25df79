import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

it("generates Signal's types exactly as they are checked in", () => {
  const check = spawnSync(process.execPath, ['scripts/signal-types.mjs', '--check'], { encoding: 'utf8' });
  expect(check.stderr).toBe('');
  expect(check.status).toBe(0);
});

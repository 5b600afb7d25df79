import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

it('are what the swagger document says now', () => {
  const check = spawnSync(process.execPath, ['scripts/signal-types.mjs', '--check'], { encoding: 'utf8' });
  expect(check.stderr).toBe('');
  expect(check.status).toBe(0);
});

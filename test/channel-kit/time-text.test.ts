import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { localSecond, localTime, timeText } from '../../src/channel-kit/time-text.ts';

const at = Date.UTC(2026, 10, 22, 23, 28, 3, 5);

it('writes a short time in the given time zone', () => {
  expect(localTime(at, 'Europe/Berlin')).toBe('2026-11-23 00:28');
  expect(localSecond(at, 'America/New_York')).toBe('2026-11-22 18:28:03');
});

it("writes a time in the machine's time zone by default", () => {
  const file = new URL('../../src/channel-kit/time-text.ts', import.meta.url);
  const script = `import(${JSON.stringify(file.href)}).then(({ localTime, localSecond }) => console.log(localTime(${at}), localSecond(${at})))`;
  const env = { PATH: process.env.PATH, TZ: 'Asia/Tokyo' };
  const { stdout } = spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8' });
  expect(stdout).toBe('2026-11-23 08:28 2026-11-23 08:28:03\n');
});

it('writes an exact time for programs, and shows an invalid stored time', () => {
  expect(timeText(at)).toBe('2026-11-22T23:28:03.005Z');
  for (const format of [timeText, localTime, localSecond]) {
    expect(format(null)).toBe('no date (null)');
    expect(format(1e300)).toBe('no date (1e+300)');
  }
});

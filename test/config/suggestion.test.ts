import { expect, it } from 'vitest';
import { suggestName } from '../../src/config/suggestion.ts';

const commands = ['start', 'status', 'sessions', 'subagents', 'signin', 'sign-ins', 'why', 'logs', 'link'];

it.each([
  ['stauts', 'status'],
  ['lgos', 'logs'],
  ['LOGS', 'logs'],
  ['signins', 'sign-ins'],
  ['session', 'sessions'],
  ['linkk', 'link'],
])('suggests for “%s” the nearest name, “%s”', (given, meant) => {
  expect(suggestName(given, commands)).toBe(meant);
  expect(suggestName(given, commands.toReversed())).toBe(meant);
});

it('recognizes a name whatever its case, hyphens and underscores', () => {
  expect(suggestName('POLL_SECONDS', ['pollLimit', 'pollSeconds'])).toBe('pollSeconds');
});

it('suggests the first of equally near names', () => {
  expect(suggestName('cat', ['bat', 'rat'])).toBe('bat');
});

it('completes the beginning of one name, but not of two', () => {
  expect(suggestName('sub', commands)).toBe('subagents');
  expect(suggestName('ses', commands)).toBe('sessions');
  expect(suggestName('sta', ['starting', 'statuses'])).toBeUndefined();
});

it('suggests nothing for a name that resembles none', () => {
  for (const given of ['', 'x', 'xy', 'hi', 'bicycle', 'x'.repeat(100_000)])
    expect(suggestName(given, commands), given.slice(0, 9)).toBeUndefined();
});

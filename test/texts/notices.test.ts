import { expect, it } from 'vitest';
import { noticesFor } from '../../src/texts/notices.ts';
import { readSourceTree } from '../architecture/source-tree.ts';

it('holds no notice that nobody says', () => {
  const root = new URL('../..', import.meta.url).pathname;
  const texts = readSourceTree(root)
    .modules.filter(({ path }) => path.startsWith('src/') && path !== 'src/texts/notices.ts')
    .map(({ text }) => text);
  const isSaid = (name: string) => texts.some((text) => new RegExp(`\\b${name}\\b`).test(text));
  expect(Object.keys(noticesFor('en')).filter((name) => !isSaid(name))).toEqual([]);
});

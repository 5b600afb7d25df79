import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { commandsOf, parleyCommand } from '../../src/channel-kit/own-commands.ts';
import { fillText } from '../../src/texts/chat-texts.ts';
import english from '../../src/texts/en.json' with { type: 'json' };
import { readSourceTexts } from './source-texts.ts';

const root = new URL('../..', import.meta.url).pathname;

it('names commands as this installation runs them, in every text', () => {
  const modules = readSourceTexts();
  const verbs = modules
    .filter(({ path }) => path.startsWith('src/cli/'))
    .flatMap(({ text }) => [...text.matchAll(/(?:\.command|addGroup)\('([a-z-]+)/g)].map(([, verb]) => verb));
  expect(verbs).toEqual(expect.arrayContaining(['pair', 'start', 'why']));
  const literal = new RegExp(`(?:(?<![\\w./}-])parley|bin/parley\\.mjs) (?:${verbs.join('|')})\\b`);
  const folders = ['src/server/page', 'src/texts'].map((folder) => `${root}${folder}`);
  const files = [
    ...modules.filter(({ path }) => !path.endsWith('/own-commands.ts')),
    ...folders.flatMap((folder) =>
      readdirSync(folder)
        .filter((name) => !name.endsWith('.ts'))
        .map((name) => ({ path: name, text: readFileSync(`${folder}/${name}`, 'utf8') })),
    ),
  ];
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap(({ path, text }) =>
    text
      .split('\n')
      // Comments may use the short names of the commands.
      .filter((code) => !/^\s*(?:\/?\*|\/\/)/.test(code) && literal.test(code))
      .map((code) => `${path}: ${code.trim()}`),
  );
  expect(found).toEqual([]);
});

it('writes its own command into a text', () => {
  expect(parleyCommand).toBe(commandsOf('clone').parley);
  expect(fillText(english.ownerDeliveryUnknown, { subject: 'net' })).toContain(
    `Run: ${parleyCommand} outbox list`,
  );
});

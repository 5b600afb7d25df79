import { adminsInGroups, asRequested, chatCommand } from './chat-command.ts';

/** `/compact`: the run that it starts reports the result. */
export const compact = chatCommand({
  name: 'compact',
  usage: '[hint]',
  menu: 'compactMenu',
  order: 'lane',
  begins: 'compact',
  parse: (words) => (words === '' ? {} : { hint: words.slice(0, longestHint) }),
  right: adminsInGroups,
  load: asRequested<{ readonly hint?: string }>,
  apply: async (_tx, _scene, input) => input,
  say: (_, texts) => texts.compactTooShort,
});

/** Longest hint, UTF-16 units. */
const longestHint = 1_000;

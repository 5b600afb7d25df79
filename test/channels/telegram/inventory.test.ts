/** Every field and kind of the Bot API has a fate: an update of the library becomes a task, not a silent loss. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  externalReplyFields,
  type Fate,
  fateOf,
  messageFields,
  smallKinds,
  updateKinds,
} from '../../../channels/telegram/inventory.ts';
import { readLibraryTypes } from './library-types.ts';
import { leafTypes, leftMembers, readMembers } from './type-members.ts';

const types = readLibraryTypes(['Message', 'Update'], leafTypes);

/** Their members have tables of their own; updates lead to objects whose kind is decided as a whole. */
const inMessages = readLibraryTypes(['Message'], leafTypes);

describe('the inventory of Telegram', () => {
  it.each([
    ['Message', messageFields],
    ['Update', updateKinds],
    ['ExternalReplyInfo', externalReplyFields],
    ['TextQuote', smallKinds.quote],
    ['CallbackQuery', smallKinds.press],
  ])('decides about every member of the type %s and about no other', (name, table) => {
    expect(Object.keys(table).sort()).toEqual(types.get(name));
  });

  it('reads every member of every type inside a message, or leaves it out for a stated reason', () => {
    const decided = new Set([
      ...Object.entries(readMembers).flatMap(([type, members]) =>
        members.split(' ').map((one) => `${type}.${one}`),
      ),
      ...Object.values(leftMembers).flatMap((members) => members.split(' ')),
    ]);
    const declared = [...inMessages]
      .filter(([type]) => type !== 'Message')
      .flatMap(([type, members]) => members.map((member) => `${type}.${member}`));
    expect(declared.filter((member) => !decided.has(member))).toEqual([]);
    expect([...decided].filter((member) => !member.endsWith('.') && !declared.includes(member))).toEqual([]);
  });

  it('reads every member that it claims to read', () => {
    const sources = ['fields', 'content-schema', 'update-schema', 'describe', 'rich-message', 'people']
      .map((file) => readFileSync(`channels/telegram/${file}.ts`, 'utf8'))
      .join('\n');
    const claimed = new Set(Object.values(readMembers).flatMap((members) => members.split(' ')));
    expect([...claimed].filter((member) => !new RegExp(`\\b${member}\\b`).test(sources))).toEqual([]);
  });

  it('gives a readable reason for everything that it refuses', () => {
    const tables: readonly Readonly<Record<string, Fate>>[] = [
      messageFields,
      updateKinds,
      externalReplyFields,
    ];
    const reasons = tables.flatMap((table) =>
      Object.values(table).filter((fate) => fate.startsWith('refused')),
    );
    expect(reasons.filter((reason) => !/^refused: [^.]{15,}$/.test(reason))).toEqual([]);
  });

  it('decides nothing about a field that the types do not have', () => {
    expect(fateOf('hologram')).toBeUndefined();
    expect(fateOf('toString')).toBeUndefined();
  });
});

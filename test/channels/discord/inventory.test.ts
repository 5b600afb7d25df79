import { ComponentType, GatewayDispatchEvents, InteractionType, MessageType } from 'discord-api-types/v10';
import { expect, it } from 'vitest';
import { contentFates } from '../../../channels/discord/content-fates.ts';
import { eventFates } from '../../../channels/discord/event-fates.ts';

/** The tables are also checked against the library's types, so a new field fails `tsc`. */
it.each([
  ['event of the gateway', GatewayDispatchEvents, eventFates.dispatchEvents],
  ['kind of message', MessageType, eventFates.messageTypes],
  ['kind of interaction', InteractionType, eventFates.interactionTypes],
  ['kind of component', ComponentType, contentFates.componentTypes],
])('decides about each %s that the library knows', (_, known, decided) => {
  const names = Object.keys(known).filter((name) => !/^\d+$/.test(name));
  expect(names.filter((name) => !Object.hasOwn(decided, name))).toEqual([]);
});

type AnyFate = { readonly as?: string; readonly why?: string; readonly note?: string };

it('says why each field, event and kind that is not read is left out', () => {
  for (const [table, fates] of Object.entries({ ...contentFates, ...eventFates }))
    for (const [name, fate] of Object.entries(fates as Record<string, AnyFate>)) {
      if (fate.as === 'nothing') expect(fate.why, `${table}.${name}`).toMatch(/\w+ \w+/);
      if (fate.as === 'refused') expect(fate.note, `${table}.${name}`).toMatch(/\w+ \w+/);
    }
});

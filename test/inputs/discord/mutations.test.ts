/** However the fields of an event change, it leaves a trace: words, files, an event, or a refusal by name. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { messageFields, undocumentedMessageFields } from '../../../channels/discord/content-fates.ts';
import { aMessage, aScene } from '../../channels/discord/payloads.ts';
import { holds } from '../../support/holds.ts';
import { changes as common, type Fields, laterFields, objectsIn, traceOfEvent } from '../mutations.ts';
import type { DiscordInput } from './discord-input.ts';
import { inputs } from './inputs.ts';

const scene = aScene();

/** Says what became of the event; undefined if nothing did. */
function traceOf({ t, d }: DiscordInput['dispatch']): string | undefined {
  const reading = scene.read(t, d);
  if (reading.kind === 'nothing') return undefined;
  if (reading.kind === 'unreadable') return `unreadable: ${reading.row.problem}`;
  // Discord is asked about the channel, and the event is read again.
  if (reading.kind !== 'events') return reading.kind;
  const [envelope] = reading.events;
  return envelope && traceOfEvent(envelope.event);
}

/** Discord also sends empty members for absent ones. */
const changes: typeof common = {
  ...common,
  empty: (at, key) => {
    at[key] = Array.isArray(at[key]) ? [] : typeof at[key] === 'object' ? {} : '';
  },
};

type Mutation = {
  readonly input: DiscordInput;
  readonly key: string;
  /** Without a time of editing it says that Discord itself has changed something. */
  readonly isEdit: boolean;
  readonly trace: string | undefined;
};

const played = new Map<unknown, readonly Mutation[]>();

/** Reads every input with this change at every one of its members, once for all tests. */
function mutationsBy(change: (at: Fields, key: string) => void): readonly Mutation[] {
  const known = played.get(change);
  if (known) return known;
  const read = inputs.filter((input) => input.read !== undefined);
  const mutations = read.flatMap((input) =>
    objectsIn(input.dispatch.d).flatMap((object, place) =>
      Object.keys(object).flatMap((key) => {
        const d = structuredClone(input.dispatch.d) as Fields;
        const at = objectsIn(d)[place];
        if (at === undefined) return [];
        change(at, key);
        const isEdit = /string|number/.test(typeof d.edited_timestamp);
        return [{ input, key, isEdit, trace: traceOf({ t: input.dispatch.t, d }) }];
      }),
    ),
  );
  played.set(change, mutations);
  return mutations;
}

it.each(Object.entries(changes))(
  'leaves a trace of a Discord event when any one of its members is %s',
  (_, change) => {
    const lost = mutationsBy(change)
      .filter(({ input: { dispatch }, isEdit }) => dispatch.t !== 'MESSAGE_UPDATE' || isEdit)
      .filter(({ trace }) => trace === undefined)
      .map(({ input, key }) => `${input.name}: ${key}`);
    expect(lost).toEqual([]);
  },
);

it.each(Object.entries(changes))(
  'refuses a Discord message as unreadable only for ids and author, not if another member is %s',
  (_, change) => {
    const odd = mutationsBy(change)
      .filter(({ input: { dispatch } }) => /^MESSAGE_(?:CREATE|UPDATE)$/.test(dispatch.t))
      .filter(({ key }) => !/^(?:id|channel_id|author)$/.test(key))
      .filter(({ trace }) => trace?.startsWith('unreadable'))
      .map(({ input, key }) => `${input.name}: ${key}`);
    expect(odd).toEqual([]);
  },
);

const fates: Readonly<Record<string, { readonly as: string }>> = {
  ...messageFields,
  ...undocumentedMessageFields,
};

it("leaves a trace of any combination of Discord's content fields with unknown ones", () => {
  const pieces = inputs.flatMap(({ dispatch: { t, d }, read }) =>
    t === 'MESSAGE_CREATE' && read?.event === 'message' && read.unknown === undefined
      ? Object.entries(d).filter(([field, value]) => isContent(field) && String(value ?? '') !== '')
      : [],
  );
  const unknown = laterFields(/^[a-z_]{3,20}_2031$/);
  const property = fc.property(fc.subarray(pieces, { maxLength: 8 }), unknown, (known, added) => {
    const d = aMessage({ content: '', ...added, ...Object.fromEntries(known) });
    const hasUnknown = Object.values(added).some((one) => typeof one === 'number' || one === true);
    const expected = known.length > 0 || hasUnknown ? /^message$/ : /^message(?:-type-0: .+)?$/;
    expect(traceOf({ t: 'MESSAGE_CREATE', d })).toMatch(expected);
  });
  holds(property, { numRuns: 2000, interruptAfterTimeLimit: 5000 });
});

/** A message that isn't a reply ignores what it would quote. */
function isContent(field: string): boolean {
  return field !== 'referenced_message' && /^(?:text|media)$/.test(fates[field]?.as ?? '');
}

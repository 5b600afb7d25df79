/** What a later version of a platform may do to the fields of an event, and the trace that the event must leave. */
import fc from 'fast-check';
import type { InboundEvent } from '#contracts/envelope.ts';

export type Fields = Record<string, unknown>;

/** Everything that may happen to one member of an object. */
export const changes: Readonly<Record<string, (at: Fields, key: string) => void>> = {
  null: (at, key) => {
    at[key] = null;
  },
  absent: (at, key) => {
    delete at[key];
  },
  renamed: (at, key) => {
    at[`${key}_2031`] = at[key];
    delete at[key];
  },
  moved: (at, key) => {
    at.moved_2031 = { [key]: at[key] };
    delete at[key];
  },
  'of another type': (at, key) => {
    at[key] = typeof at[key] === 'string' ? 17 : 'seventeen';
  },
  'in a list': (at, key) => {
    at[key] = [at[key]];
  },
  'beside an unknown field': (at) => {
    at.added_2031 = { text: 'new' };
  },
};

/** Every object inside a value, itself first. */
export function objectsIn(value: unknown): readonly Fields[] {
  if (typeof value !== 'object' || value === null) return [];
  const inside = Object.values(value).flatMap(objectsIn);
  return Array.isArray(value) ? inside : [value as Fields, ...inside];
}

/** Says what became of an event; undefined if nothing did. */
export function traceOfEvent(event: InboundEvent): string | undefined {
  if (event.kind === 'unsupported') return /^\S+: \S/.test(event.name) ? event.name : undefined;
  if (event.kind !== 'message') return event.kind;
  const { text, described = [], attachments, unknownFields = [] } = event;
  const hasContent = text !== '' || described.length > 0 || attachments.length > 0;
  return hasContent || unknownFields.length > 0 ? 'message' : undefined;
}

/** Fields of a later version, with any JSON. `names`: a pattern that no known field fits. */
export function laterFields(names: RegExp): fc.Arbitrary<Fields> {
  // JSON with such keys is refused as a whole.
  const value = fc
    .jsonValue()
    .filter((json) => !/"(?:__proto__|constructor|prototype)":/.test(JSON.stringify(json)));
  return fc.dictionary(fc.stringMatching(names), value, { maxKeys: 4 });
}

/** Envelopes in the shapes that signal-cli really sends, each with how Parley reads it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fieldFates, isEmptyField } from '../../../channels/signal/field-fates.ts';
import { botOf } from '../../../channels/signal/ids.ts';
import { type Known, readFrames } from '../../../channels/signal/inbound.ts';
import { holds } from '../../support/holds.ts';
import { laterFields, objectsIn } from '../mutations.ts';
import { summarize } from '../read-input.ts';
import { events } from './events.ts';
import { messages } from './messages.ts';
import { recordFields } from './record-fields.ts';
import {
  ada,
  at,
  bea,
  botAci,
  botNumber,
  data,
  envelope,
  type Fields,
  type Frame,
  type SignalInput,
} from './signal-input.ts';

const known: Known = {
  bot: botOf({ aci: botAci, number: botNumber, name: 'Parley' }),
  nameOf: (aci) =>
    new Map([
      [ada, 'Ada'],
      [bea, 'Bea'],
    ]).get(aci),
  originalOf: ({ timestamp }) => timestamp,
  learn: () => undefined,
  groupOf: () => undefined,
};
const inputs: readonly SignalInput[] = [...messages, ...events];

describe('an envelope of signal-cli', () => {
  it.each(inputs.map((input) => [input.name, input] as const))(
    'reads a Signal envelope as what it is: %s',
    (_, { frame, read }) => {
      const { events: found, unreadable } = readFrames([frame], known);
      expect(unreadable).toEqual([]);
      expect(found.map(({ event }) => summarize(event))).toEqual(read === undefined ? [] : [read]);
    },
  );

  it('decides about every field of every record and about no other', () => {
    const decided = Object.fromEntries(
      Object.entries(fieldFates).map(([record, fates]) => [record, Object.keys(fates).sort()]),
    );
    const known = Object.entries(recordFields).map(([record, fields]) => [record, [...fields].sort()]);
    expect(decided).toEqual(Object.fromEntries(known));
  });

  it('marks a file that may be viewed only once', () => {
    const once = inputs.find(({ name }) => name === 'a picture to be looked at once');
    const [envelope] = readFrames(once ? [once.frame] : [], known).events;
    expect(envelope?.event).toMatchObject({ attachments: [{ isViewOnce: true }] });
  });

  it('keeps the visible message id of a refused envelope', () => {
    const named = inputs.filter(({ read }) => read?.event === 'unsupported');
    for (const { frame } of named) {
      const [envelope] = readFrames([frame], known).events;
      expect(envelope?.event).toMatchObject({ messageId: expect.stringMatching(`^${ada}:\\d+$`) });
    }
    const broken = { ...named[0]?.frame, envelope: { ...named[0]?.frame.envelope, dataMessage: 7 } };
    expect(readFrames([broken], known).unreadable).toMatchObject([
      { messageId: expect.stringContaining(ada) },
    ]);
  });
});

describe('a changed envelope', () => {
  const withContent = inputs.filter(({ frame }) => frame.envelope.dataMessage !== undefined);
  const change = (frame: Frame, fields: (content: Fields) => Fields): Frame => ({
    ...frame,
    envelope: { ...frame.envelope, dataMessage: fields(frame.envelope.dataMessage as Fields) },
  });
  const mutations: readonly ((content: Fields, name: string) => Fields)[] = [
    (content, name) => ({ ...content, [name]: null }),
    (content, name) => Object.fromEntries(Object.entries(content).filter(([key]) => key !== name)),
    (content, name) => ({ ...content, [name]: 7 }),
    (content, name) => ({ ...content, [name]: 'moved' }),
    (content, name) => ({ ...content, [name]: [] }),
    (content, name) => ({ ...content, [name]: { [name]: content[name] } }),
    (content) => ({ ...content, surprise: { deep: [1] } }),
  ];

  it('never calls a message unreadable for one changed field', () => {
    holds(
      fc.property(
        fc.constantFrom(...withContent),
        fc.constantFrom(...Object.keys(fieldFates.DataMessage).filter((name) => name !== 'groupInfo')),
        fc.constantFrom(...mutations),
        ({ frame }, name, mutate) => {
          const mutated = change(frame, (content) => mutate(content, name));
          expect(readFrames([mutated], known).unreadable).toEqual([]);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('leaves a trace of an envelope with any one member changed', () => {
    const lost: string[] = [];
    for (const { name, frame } of withContent) {
      const places = objectsIn(frame.envelope.dataMessage).flatMap((object, place) =>
        Object.keys(object).map((key) => ({ place, key })),
      );
      for (const { place, key } of places)
        for (const mutate of mutations) {
          const mutated = change(frame, (content) => {
            const copy = structuredClone(content);
            return replaceObject(copy, objectsIn(copy)[place], (at) => mutate(at, key)) as Fields;
          });
          if (traceOf(mutated) === undefined && !isEmpty(mutated)) lost.push(`${name}: ${key}`);
        }
    }
    expect([...new Set(lost)]).toEqual([]);
  });

  it('leaves a trace of known content combined with unknown fields', () => {
    const pieces = withContent.flatMap(({ frame }) =>
      Object.entries(frame.envelope.dataMessage as Fields)
        .filter(([field, value]) => isContent(field) && !isEmptyField(value))
        .map(([field, value]) => ({ [field]: value })),
    );
    const unknown = laterFields(/^[a-z]{3,20}2031$/);
    const property = fc.property(fc.subarray(pieces, { maxLength: 8 }), unknown, (some, added) => {
      const frame = data(Object.assign({}, added, ...some));
      if (!isEmpty(frame)) expect(traceOf(frame)).toBeDefined();
    });
    holds(property, { numRuns: 2000, interruptAfterTimeLimit: 5000 });
  });

  it('names the new field when the only content was renamed', () => {
    for (const field of ['message', 'attachments', 'pollCreate', 'contacts', 'sticker', 'payment']) {
      const input = messages.find(({ frame }) => {
        const { [field]: value } = (frame.envelope.dataMessage as Fields) ?? {};
        return Array.isArray(value) ? value.length > 0 : value != null;
      });
      const content = (input?.frame.envelope.dataMessage ?? {}) as Fields;
      const renamed = { timestamp: content.timestamp, message: null, [`${field}V2`]: content[field] };
      const [envelope] = readFrames(input ? [change(input.frame, () => renamed)] : [], known).events;
      expect(envelope && summarize(envelope.event)).toEqual({ event: 'message', unknown: [`${field}V2`] });
    }
  });

  it('names the text field when it is not text', () => {
    const input = messages.find(({ frame }) => (frame.envelope.dataMessage as Fields)?.message != null);
    for (const message of [7, true, { text: 'hi' }, ['hi']]) {
      const frame = input && change(input.frame, ({ timestamp }) => ({ timestamp, message }));
      const [envelope] = readFrames(frame ? [frame] : [], known).events;
      expect(envelope && summarize(envelope.event)).toEqual({ event: 'message', unknown: ['message'] });
    }
  });

  it('refuses an edit without content as unreadable, under its id', () => {
    const editMessage = { targetSentTimestamp: at - 9, dataMessage: null };
    expect(readFrames([envelope({ editMessage })], known)).toMatchObject({
      events: [],
      unreadable: [{ messageId: expect.stringContaining(ada) }],
    });
  });

  it('refuses a message whose group is unclear instead of answering elsewhere', () => {
    const input = messages.find(({ name }) => name === 'a text in a group');
    for (const groupInfo of [7, 'group', { id: 'x' }, []]) {
      const frame = input && change(input.frame, (content) => ({ ...content, groupInfo }));
      expect(readFrames([frame], known)).toMatchObject({ events: [], unreadable: [{}] });
    }
  });
});

/** Says what became of a message; undefined if nothing did. */
function traceOf(frame: Frame): string | undefined {
  const { events: found, unreadable } = readFrames([frame], known);
  const [event] = found.map((one) => one.event);
  if (event === undefined) return unreadable[0] && `unreadable: ${unreadable[0].problem}`;
  if (event.kind !== 'message') return event.kind;
  const { text, described = [], attachments, unknownFields = [], quote } = event;
  const hasContent = text.trim() !== '' || described.length > 0 || attachments.length > 0;
  return hasContent || unknownFields.length > 0 || quote !== undefined ? 'message' : undefined;
}

const isContent = (field: string) =>
  /^(?:text|media|described|event)$/.test((fieldFates.DataMessage as Fields)[field] as string);

/** Says whether a message has no field that could be content, or only reports a new timer. */
function isEmpty({ envelope: { dataMessage } }: Frame): boolean {
  const decided: Fields = fieldFates.DataMessage;
  if ((dataMessage as Fields).isExpirationUpdate === true) return true;
  return Object.entries(dataMessage as Fields).every(
    ([field, value]) => isEmptyField(value) || (field in decided && !isContent(field)),
  );
}

/** Returns the value with one of its objects replaced. */
function replaceObject(value: unknown, object: Fields | undefined, by: (at: Fields) => Fields): unknown {
  if (value === object) return by(value as Fields);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => replaceObject(one, object, by));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, replaceObject(one, object, by)]));
}

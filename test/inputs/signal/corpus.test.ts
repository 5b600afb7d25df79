/** Envelopes in the shapes that signal-cli really sends, each with how Parley reads it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fieldFates } from '../../../channels/signal/field-fates.ts';
import { botOf } from '../../../channels/signal/ids.ts';
import { type Known, readFrames } from '../../../channels/signal/inbound.ts';
import { summarize } from '../read-input.ts';
import { events } from './events.ts';
import { messages } from './messages.ts';
import { recordFields } from './record-fields.ts';
import { ada, bea, botAci, botNumber, type Fields, type Frame, type SignalInput } from './signal-input.ts';

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
    'is read as what it is: %s',
    (_, { frame, read }) => {
      const { events: found, unreadable } = readFrames([frame], known);
      expect(unreadable).toEqual([]);
      expect(found.map(({ event }) => summarize(event))).toEqual(read === undefined ? [] : [read]);
    },
  );

  it('has a fate for each field of each record, and for no other', () => {
    const decided = Object.fromEntries(
      Object.entries(fieldFates).map(([record, fates]) => [record, Object.keys(fates).sort()]),
    );
    const known = Object.entries(recordFields).map(([record, fields]) => [record, [...fields].sort()]);
    expect(decided).toEqual(Object.fromEntries(known));
  });

  it('marks a file that may be looked at once', () => {
    const once = inputs.find(({ name }) => name === 'a picture to be looked at once');
    const [envelope] = readFrames(once ? [once.frame] : [], known).events;
    expect(envelope?.event).toMatchObject({ attachments: [{ isViewOnce: true }] });
  });

  it('is found under the id that people see when it is refused', () => {
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

describe('a mutation of an envelope', () => {
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

  it('of one field makes a message poorer, never unreadable', () => {
    fc.assert(
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

  it('that renames its only content names the new field', () => {
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

  it('that has something other than a text as its text names that field', () => {
    const input = messages.find(({ frame }) => (frame.envelope.dataMessage as Fields)?.message != null);
    for (const message of [7, true, { text: 'hi' }, ['hi']]) {
      const frame = input && change(input.frame, ({ timestamp }) => ({ timestamp, message }));
      const [envelope] = readFrames(frame ? [frame] : [], known).events;
      expect(envelope && summarize(envelope.event)).toEqual({ event: 'message', unknown: ['message'] });
    }
  });

  it('that makes its group unclear is refused instead of being answered elsewhere', () => {
    const input = messages.find(({ name }) => name === 'a text in a group');
    for (const groupInfo of [7, 'group', { id: 'x' }, []]) {
      const frame = input && change(input.frame, (content) => ({ ...content, groupInfo }));
      expect(readFrames([frame], known)).toMatchObject({ events: [], unreadable: [{}] });
    }
  });
});

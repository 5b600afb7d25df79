/** However the fields of an update change, the update leaves a trace: words, files, an event, or a refusal by name. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { botOf } from '../../../channels/telegram/ids.ts';
import { readBatch } from '../../../channels/telegram/inbound.ts';
import { messageFields } from '../../../channels/telegram/inventory.ts';
import { holds } from '../../support/holds.ts';
import { changes, type Fields, laterFields, objectsIn, traceOfEvent } from '../mutations.ts';
import { events } from './events.ts';
import { lines } from './lines.ts';
import { media } from './media.ts';
import { quotes } from './quotes.ts';
import { richMessages } from './rich.ts';
import { aMessage, type MessageFields } from './telegram-input.ts';
import { words } from './words.ts';

const bot = botOf({ id: 700, username: 'ParleyBot' });
const inputs = [...words, ...richMessages, ...media, ...lines, ...quotes, ...events];
const read = (update: unknown) => readBatch([update], bot, 1_800_000_000_000);

/** Says what became of the update; undefined if nothing did. */
function fateOf(update: unknown): string | undefined {
  const { events: read1, unreadable } = read(update);
  const [envelope] = read1;
  if (envelope !== undefined) return traceOfEvent(envelope.event);
  return unreadable[0] && `unreadable: ${unreadable[0].problem}`;
}

describe('an update of Telegram', () => {
  it.each(Object.entries(changes))(
    'leaves a trace of an update when any one of its members is %s',
    (_, change) => {
      const lost: string[] = [];
      for (const { name, update } of inputs) {
        const places = objectsIn(structuredClone(update)).flatMap((object, place) =>
          Object.keys(object).map((key) => ({ place, key })),
        );
        for (const { place, key } of places) {
          const changed = structuredClone(update) as Fields;
          const object = objectsIn(changed)[place];
          if (object === undefined || object === changed) continue;
          change(object, key);
          if (fateOf(changed) === undefined) lost.push(`${name}: ${key}`);
        }
      }
      expect(lost).toEqual([]);
    },
  );

  it('calls an update unreadable only for ids that decide about access, identity or migration', () => {
    const ids = new Set(['message_id', 'chat', 'id', 'from', 'draft_id', 'migrate_to_chat_id']);
    const odd: string[] = [];
    for (const { name, update } of inputs) {
      for (const change of ['null', 'absent', 'of another type', 'in a list']) {
        const body = Object.values(update)[1] as Fields;
        for (const key of Object.keys(body).filter((one) => !ids.has(one))) {
          const changed = structuredClone(update) as Fields;
          changes[change]?.(Object.values(changed)[1] as Fields, key);
          if (fateOf(changed)?.startsWith('unreadable')) odd.push(`${name}: ${key} ${change}`);
        }
      }
    }
    expect(odd.filter((one) => !/: sender_chat /.test(one))).toEqual([]);
  });

  it("never reads a broken sender chat as the stand-in account's message", () => {
    const standIn = { id: 1_087_968_824, is_bot: true, first_name: 'Group' };
    for (const sender_chat of [{}, 'x', [], { id: 'x' }, { title: 'News' }, 17]) {
      const batch = read({ update_id: 1, message: aMessage({ from: standIn, sender_chat, text: '/stop' }) });
      expect([batch.events.length, batch.unreadable.length]).toEqual([0, 1]);
    }
  });

  it('leaves a trace of any combination of known content fields with unknown ones', () => {
    const pieces: readonly MessageFields[] = inputs.flatMap(({ update }) => {
      const { message_id: _, date: __, chat: ___, from: ____, ...fields } = (update.message ?? {}) as Fields;
      return Object.entries(fields)
        .filter(
          ([field, value]) => value !== null && ['text', 'line', 'note', 'media'].includes(fateIn(field)),
        )
        .map(([field, value]) => ({ [field]: value }));
    });
    const unknown = laterFields(/^[a-z_]{3,20}_2031$/);
    const property = fc.property(fc.subarray([...pieces], { maxLength: 8 }), unknown, (known, added) => {
      const body = aMessage(Object.assign({}, added, ...known));
      const { event } = read({ update_id: 1, message: body }).events[0] ?? {};
      const hasUnknown = Object.values(added).some((value) => value !== null && value !== '');
      const isEmpty = known.length === 0 && !hasUnknown;
      expect(event && traceOfEvent(event)).toEqual(isEmpty ? expect.stringMatching(/^message: /) : 'message');
    });
    holds(property, { numRuns: 2000, interruptAfterTimeLimit: 5000 });
  });

  it('reads an update in time linear in its size, however nested it is', () => {
    const deep = (depth: number): unknown =>
      depth === 0 ? 'x' : { type: 'bold', text: [deep(depth - 1), 'y'] };
    const quoted = (depth: number): unknown =>
      depth === 0
        ? { type: 'paragraph', text: 'z\n'.repeat(5000) }
        : { type: 'blockquote', blocks: [quoted(depth - 1)] };
    const entities = Array.from({ length: 4000 }, (_, offset) => ({
      type: ['blockquote', 'bold', 'pre', 'text_link'][offset % 4],
      offset: offset % 50,
      length: 4000,
      url: `https://example.org/${'a'.repeat(2000)}`,
    }));
    for (const fields of [
      {
        rich_message: { blocks: Array.from({ length: 500 }, () => ({ type: 'paragraph', text: deep(20) })) },
      },
      { rich_message: { blocks: [quoted(20)] } },
      {
        rich_message: {
          blocks: Array.from({ length: 30_000 }, () => ({ type: 'list', items: [{ label: '•' }] })),
        },
      },
      { text: 'x\n'.repeat(2048), entities },
    ]) {
      const event = read({ update_id: 1, message: aMessage(fields) }).events[0]?.event;
      const { text = '', shown = '' } = event?.kind === 'message' ? event : {};
      expect(text.length).toBeLessThanOrEqual(65_536);
      expect(shown.length).toBeLessThanOrEqual(200_000);
    }
  });
});

function fateIn(field: string): string {
  return (messageFields as Readonly<Record<string, string>>)[field] ?? '';
}
